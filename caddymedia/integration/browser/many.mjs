// A folder with many images is shown page by page.
import { assert, facts, open, run, shot } from './lib.mjs';

const { folder, count, late } = facts.more;

await run(async () => {
	const page = await open();
	const asked = [];
	page.on('request', (request) => asked.push(new URL(request.url()).pathname));
	const previews = () => asked.filter((path) => path.includes('/api/preview/')).length;
	const items = page.locator('main').getByRole('link', { name: /\.jpg/ });

	await page.goto(`${facts.panel}#/items/img/content/${folder}`);
	await items.first().waitFor();
	const first = await items.count();
	assert.ok(first > 0 && first <= 200, `${first} of ${count} items at once`);
	await shot(page, 'first', false);
	assert.ok(previews() <= first, `${previews()} previews for ${first} items`);
	await page.getByRole('button', { name: /^Show more/ }).click();
	await page.waitForFunction((n) => document.querySelectorAll('main a[href*=".jpg"]').length > n, first);
	assert.ok(await items.count() <= 2 * first);
	assert.equal(asked.filter((path) => path.endsWith(`/api/items/img/content`)).length, 2);

	// A late one is found by its name.
	await page.getByLabel(/^Search by name/).fill(late);
	await page.keyboard.press('Enter');
	const found = page.locator('main').getByRole('link', { name: new RegExp(late) });
	const more = page.getByRole('button', { name: /continue/i });
	for (let rounds = 0; await found.count() === 0 && rounds < count; rounds++) {
		await more.click({ timeout: 1000 }).catch(() => {}); // it may be busy, or done
	}
	await shot(page, 'found', false);

	// A search for a missing name runs to the end.
	await page.getByLabel(/^Search by name/).fill('nowhere');
	await page.keyboard.press('Enter');
	const nothing = page.getByRole('heading', { name: 'Nothing found' });
	for (let rounds = 0; await nothing.count() === 0 && rounds < count; rounds++) {
		await more.press('Enter', { timeout: 1000 }).catch(() => {}); // it may be busy, or done
	}
	await nothing.waitFor();
	await page.getByText(/^Searched [0-9,]+ names, found 0\.$/).waitFor();
});
