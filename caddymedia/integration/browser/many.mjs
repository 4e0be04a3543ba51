// A folder with many images is shown page by page.
import { accessible, assert, facts, focused, open, run, shot, wheelUntil } from './lib.mjs';

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

	// Further pages come while the user scrolls, and only then.
	const lists = () => asked.filter((path) => path.endsWith('/api/items/img/content')).length;
	const shown = async () => Number((await page.getByText(/^[0-9,]+ items shown/).innerText()).split(' ')[0].replace(',', ''));
	const before = await shown();
	const pages = lists();
	assert.ok(before < count / 10, `${before} items without scrolling`);
	await wheelUntil(page, async () => await shown() >= before + 500);
	assert.ok(lists() - pages < 12, `${lists() - pages} requests for 500 items`);
	assert.ok(previews() <= await shown());
	assert.ok(await items.count() < 200, `${await items.count()} items in the page`);

	// A failure is shown at the button, which tries again.
	await page.route('**/api/items/img/content?*', (route) => route.fulfill({ status: 502, json: { error: 'The storage is down.' } }));
	await wheelUntil(page, () => page.getByText('The storage is down.').count());
	await accessible(page, 'a failed page');
	await shot(page, 'failed-page', false);
	await page.unroute('**/api/items/img/content?*');
	await page.getByRole('button', { name: 'Try again' }).press('Enter');
	await page.waitForFunction(() => document.activeElement.localName === 'a');
	assert.match(await focused(page), /\.jpg/, 'the first new one has the focus');

	// Another order is refused for so many, with the reason, and not remembered for this folder.
	await page.getByLabel('Order', { exact: true }).selectOption('Newest first');
	await page.getByText(/The items are shown by name\.$/).waitFor();
	assert.equal(await page.getByLabel('Order', { exact: true }).inputValue(), 'name');
	await items.first().waitFor();
	await accessible(page, 'a refused order');
	await shot(page, 'refused-order', false);

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
