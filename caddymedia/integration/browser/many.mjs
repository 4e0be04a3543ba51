// A folder with many images is shown page by page.
import { accessible, assert, facts, focused, open, run, shot, visit, wheelUntil } from './lib.mjs';

const { folder, count, late } = facts.more;

await run(async () => {
	const page = await open();
	const asked = [];
	page.on('request', (request) => asked.push(new URL(request.url()).pathname));
	const previews = () => asked.filter((path) => path.includes('/api/preview/')).length;
	const items = page.locator('main').getByRole('link', { name: /\.jpg/ });

	await visit(page, `#/items/img/content/${folder}`);
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
	await page.getByText(/^The items are shown by name: the list has more than 10,000 items/).waitFor();
	assert.equal(await page.getByLabel('Order', { exact: true }).inputValue(), 'name');
	await items.first().waitFor();
	await accessible(page, 'a refused order');
	await shot(page, 'refused-order', false);

	// It is not tried again on the next visit, which says so.
	await visit(page, '#/items/file/content');
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	const ordered = [];
	page.on('request', (request) => request.url().includes('order=') && ordered.push(request.url()));
	await visit(page, `#/items/img/content/${folder}`);
	await items.first().waitFor();
	await page.getByText(/^The items are shown by name: the list has more than 10,000 items/).waitFor();
	assert.deepEqual(ordered, []);
	await page.getByLabel('Order', { exact: true }).selectOption('Name');

	await kept(page, items);
	await atMost(page);
	await slowPage(page);

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
	await page.getByText('Found 0 items.').waitFor();
});

/** The position in the list is kept by Back, a reload, an expired cursor, and in a smaller window. */
async function kept(page, items) {
	const api = '**/api/items/img/content?*';
	const inView = () => page.evaluate(() => [...document.querySelectorAll('[data-item]')].find((entry) => entry.getBoundingClientRect().bottom > 0)?.dataset.item ?? '0');
	const near = async (wanted) => {
		const number = (name) => Number(name.match(/\d+/)[0]);
		await page.waitForFunction(() => document.querySelector('[data-item]'));
		for (let frames = 0; Math.abs(number(await inView()) - number(wanted)) > 12; frames++) {
			assert.ok(frames < 300, `${await inView()} is in view instead of ${wanted}`);
			await page.evaluate(() => new Promise(requestAnimationFrame));
		}
	};
	await visit(page, '#/items/img/content');
	await page.getByText('1 folder.').waitFor();
	await page.getByRole('link', { name: folder, exact: true }).click();
	await items.first().waitFor();
	await wheelUntil(page, async () => /image-003/.test(await inView()));
	await page.waitForFunction(() => history.state?.list.top === scrollY);
	let seen = await inView();
	await page.getByRole('link', { name: 'Health' }).click();
	await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await page.goBack();
	await near(seen);
	await page.reload();
	await near(seen);
	await page.setViewportSize({ width: 700, height: 900 });
	await near(seen);
	await page.setViewportSize({ width: 1280, height: 900 });
	await near(seen);

	// The focused item too.
	const focusedItem = items.nth(await items.count() - 20);
	await focusedItem.focus();
	const name = await focused(page);
	await page.getByRole('link', { name: 'Health' }).press('Enter');
	await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await page.goBack();
	await page.waitForFunction((name) => document.activeElement.innerText === name, name);

	// The cursor of the next page has expired: the list is loaded anew, once.
	let refused = 0;
	await page.route(api, async (route) => {
		if (refused || !route.request().url().includes('cursor=')) return route.fallback();
		refused++;
		seen = await inView();
		return route.fulfill({ status: 400, json: { error: 'The cursor is not from an earlier answer.' } });
	});
	await wheelUntil(page, () => refused);
	// The wheel may still turn.
	await page.waitForFunction((seen) => [...document.querySelectorAll('[data-item]')].find((entry) => entry.getBoundingClientRect().bottom > 0)?.dataset.item >= seen, seen);
	await page.unroute(api);
	await wheelUntil(page, async () => /image-006/.test(await inView()));
	assert.equal(await page.getByText('The cursor').count(), 0);
	await page.route(api, (route) => (route.request().url().includes('cursor=') ? route.fulfill({ status: 400, json: { error: 'The cursor is not from an earlier answer.' } }) : route.fallback()));
	await wheelUntil(page, () => page.getByText('The cursor is not from an earlier answer.').count());
	await page.unroute(api);
	await page.getByRole('button', { name: 'Try again' }).click();
	await page.getByText('The cursor is not from an earlier answer.').waitFor({ state: 'detached' });
}

/** An item that is deleted while a page with it is on its way does not appear. */
async function slowPage(page) {
	const api = '**/api/items/img/content?*';
	const bar = page.getByRole('region', { name: 'Selection' });
	await page.setViewportSize({ width: 1280, height: 600 }); // the second page is out of reach
	await page.goto('about:blank');
	await visit(page, `#/items/img/content/${folder}`);
	await page.getByText('60 items shown').waitFor();
	let release;
	const held = new Promise((done) => { release = done; });
	let slow;
	await page.route(api, async (route) => {
		if (slow || !route.request().url().includes('limit=120')) return route.fallback();
		slow = route.request();
		const response = await route.fetch();
		await held;
		return route.fulfill({ response });
	});
	await wheelUntil(page, () => slow);
	await page.keyboard.press('Control+a');
	await bar.getByRole('button', { name: 'Select the rest' }).click();
	await bar.getByText(/^[\d,]{3,} items selected/).waitFor();
	await bar.getByRole('button', { name: 'Stop' }).click();
	const deleted = parseInt((await bar.getByText(/items selected/).innerText()).replace(',', ''), 10);
	await bar.getByRole('button', { name: 'Delete' }).click();
	await page.route('**/api/items/img/content', (route) => route.fulfill({ json: { success: true, result: new URLSearchParams(route.request().postData()).getAll('filename').map((filename) => ({ filename, deleted: true })) } }));
	await page.getByRole('dialog').getByRole('button', { name: /^Delete / }).click();
	await page.getByRole('status').filter({ hasText: /items deleted\.$/ }).waitFor();
	release();
	// Further pages come from the server, which has not deleted them.
	const next = `image-${String(deleted).padStart(5, '0')}.jpg`;
	await page.waitForFunction((next) => document.querySelector('[data-item]')?.dataset.item.endsWith(next), next);
	await page.unrouteAll();
	await page.setViewportSize({ width: 1280, height: 900 });
}

/** At most 10,000 items are selected, and the bar says so. */
async function atMost(page) {
	const bar = page.getByRole('region', { name: 'Selection' });
	await page.evaluate(() => scrollTo(0, 0));
	await page.keyboard.press('Control+a');
	await bar.getByRole('button', { name: 'Select the rest' }).click();
	await bar.getByText(/^10,000 items selected, .*, the most at once$/).waitFor();
	await page.getByRole('status').filter({ hasText: '10,000 items selected, the most at once' }).waitFor();
	await accessible(page, 'the largest selection');
	await shot(page, 'most', false);
	await page.keyboard.press('Escape');
	await bar.waitFor({ state: 'hidden' });
}
