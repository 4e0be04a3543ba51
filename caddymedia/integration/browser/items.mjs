// Browsing items: as a list, by search, by address, back and forth.
import { accessible, announced, assert, facts, focused, open, run, shot, uploading, visit, wheelUntil } from './lib.mjs';

await run(async () => {
	const page = await open({ route: '#/items/img/content/all' });
	const button = (name) => page.getByRole('button', { name, exact: true });
	const link = (name) => page.getByRole('main').getByRole('link', { name });
	const item = (name) => page.getByRole('dialog', { name, exact: true });
	const goTo = (hash) => page.evaluate((hash) => { location.hash = hash; }, hash);
	const address = (end) => page.waitForFunction((end) => decodeURIComponent(location.hash).endsWith(end), end);

	// As a list, which is remembered; further items are loaded before their end is in view.
	await button('List').click();
	const table = page.getByRole('table', { name: 'Items' });
	await table.waitFor();
	assert.deepEqual(await table.getByRole('columnheader').allInnerTexts(), ['', 'Name', 'Size', 'Changed', 'Type']);
	await page.reload();
	await table.waitFor();
	await wheelUntil(page, () => page.getByText('80 items.').count());
	await wheelUntil(page, () => page.evaluate(() => scrollY === 0), -600);
	await accessible(page, 'a list');
	await shot(page, 'list', false);

	// A search without results, and clearing it.
	await page.getByLabel(/^Search by name/).fill('nowhere');
	await page.keyboard.press('Enter');
	await page.getByText('No name here contains “nowhere”.').waitFor();
	await accessible(page, 'a search without result');
	await link('Clear').click();
	await table.waitFor();

	// An item is part of the address: Escape, Back, Forward and reloading work.
	const first = table.getByRole('link').first();
	const name = await first.innerText();
	await first.click();
	await item(name).waitFor();
	await page.keyboard.press('Escape');
	await address('/all');
	assert.equal(await focused(page), name, 'the focus comes back');
	await page.goForward();
	await item(name).waitFor();
	await page.reload();
	await item(name).waitFor();
	await page.keyboard.press('Escape');
	await address('/all');
	await table.waitFor();
	await first.click();
	await item(name).getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('dialog', { name: /^Delete/ }).waitFor();
	await page.goBack();
	await page.waitForFunction(() => !document.querySelector('dialog'));

	// Another page from an open item; an item by its address; a missing one.
	await first.click();
	await item(name).waitFor();
	await goTo('#/health');
	await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await page.getByRole('list', { name: 'Service' }).waitFor();
	await address('#/health');
	await page.goto('about:blank');
	await page.goto(`${facts.panel}#/items/img/content?item=tree.jpg`);
	await item('tree.jpg').getByRole('button', { name: 'Delete' }).waitFor();
	await page.getByText(/^\d+ folders?, /).waitFor();
	await page.keyboard.press('Escape');
	await address('/content');
	assert.match(await focused(page), /tree\.jpg/, 'the focus goes to the item');
	await goTo('#/items/img/content?item=missing.jpg');
	await item('missing.jpg').getByRole('alert').waitFor();
	await accessible(page, 'a missing item');
	await page.keyboard.press('Escape');
	await address('/content');
	await goTo('#/constructor');
	await page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();

	// Another alias, chosen by keyboard: the focus stays.
	await goTo('#/items/img/content');
	const alias = page.getByLabel('Library', { exact: true });
	await alias.focus();
	await page.keyboard.press('ArrowDown');
	await address('/img/photos');
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	assert.equal(await page.evaluate(() => document.activeElement.value), 'img/photos');

	await orders(page);

	// Deleted: the focus moves to the next item.
	await goTo('#/items/img/content/all');
	const second = await table.getByRole('link').nth(1).innerText();
	await first.click();
	await item(name).getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('dialog', { name: /^Delete/ }).getByRole('button', { name: 'Delete' }).click();
	await announced(page, `all/${name} is deleted.`);
	await address('/all');
	assert.equal(await focused(page), second);
	await copying(page);
	await onPhone();
	await manyFolders();
});

/** The order is remembered, with folders first. */
async function orders(page) {
	const table = page.getByRole('table', { name: 'Items' });
	const first = table.getByRole('link').first();
	const order = page.getByLabel('Order', { exact: true });
	await visit(page, '#/items/img/content/all');
	await order.selectOption('Name, reversed');
	await table.getByRole('link', { name: 'oldest.jpg' }).waitFor();
	assert.equal(await first.innerText(), 'oldest.jpg');
	await page.reload();
	await first.waitFor();
	assert.equal(await first.innerText(), 'oldest.jpg');
	for (const [name, text] of [['Newest first', 'newest.jpg'], ['Oldest first', 'oldest.jpg']]) {
		await order.selectOption(name);
		await page.waitForFunction((text) => document.querySelector('table a')?.innerText === text, text);
	}
	await accessible(page, 'another order');

	// The heads sort too, and keep the focus.
	const head = (text) => table.getByRole('columnheader', { name: text });
	await head('Size').getByRole('button').press('Enter');
	await page.waitForFunction(() => document.querySelector('table a')?.innerText === 'newest.jpg');
	assert.equal(await order.inputValue(), '-size');
	assert.equal(await head('Size').getAttribute('aria-sort'), 'descending');
	await page.waitForFunction(() => document.activeElement.dataset.sort === 'Size');
	await page.keyboard.press('Enter');
	await page.waitForFunction(() => document.querySelector('table a')?.innerText === 'image-00.jpg');
	assert.equal(await head('Size').getAttribute('aria-sort'), 'ascending');
	await head('Name').getByRole('button').click();
	await page.waitForFunction(() => document.querySelector('th.col-name').ariaSort === 'ascending');
	await table.locator('tbody img').first().evaluate((img) => img.decode());

	// So does its check box select all that are shown.
	await table.getByLabel('Select image-01.jpg').check();
	const all = table.getByLabel('Select all');
	assert.equal(await all.evaluate((box) => box.indeterminate), true);
	await all.check();
	await page.getByRole('region', { name: 'Selection' }).getByText(/^(60|80) items selected/).waitFor();
	await accessible(page, 'a selection of all rows');
	await shot(page, 'rows', false);
	await all.uncheck();
	await page.getByRole('region', { name: 'Selection' }).waitFor({ state: 'hidden' });
	await order.selectOption('Name');
	await page.waitForFunction(() => document.querySelector('table a')?.innerText === 'image-00.jpg');
}

/** On a phone the pages are one row, and the first images are on the first screen. */
async function onPhone() {
	const page = await open({ route: '#/items/img/content/all', width: 390, height: 844 });
	const navigation = await page.getByRole('navigation', { name: 'Pages' }).boundingBox();
	assert.ok(navigation.height < 70, `the navigation is ${navigation.height} pixels high`);
	await page.getByRole('img', { name: /^Preview of/ }).first().waitFor();
	const image = await page.getByRole('img', { name: /^Preview of/ }).first().boundingBox();
	assert.ok(image.y + image.height < navigation.y, `the first image ends at ${image.y + image.height}`);
	const options = page.getByRole('button', { name: 'Upload options' });
	assert.equal(await page.getByLabel('Into the folder').isVisible(), false);
	await options.focus();
	await page.keyboard.press('Enter');
	assert.equal(await page.getByLabel('Into the folder').inputValue(), 'all');
	await accessible(page, 'upload options on a phone');
	await shot(page, 'phone', false);
}

/** Items appear after more folders than the first page has. */
async function manyFolders() {
	const page = await open({ route: '#/items/img/content/deep' });
	await page.getByText('70 folders, 9 items.').waitFor();
	await wheelUntil(page, () => page.getByRole('img', { name: 'Preview of tree-8.jpg' }).isVisible());
	await accessible(page, 'many folders');
	await shot(page, 'many-folders', false);
}

/** Copies if the browser allows it, if it refuses, and without a clipboard. */
async function copying(page) {
	const copy = page.getByRole('button', { name: 'Copy: Folder and name' });
	await page.goto(`${facts.panel}#/items/img/content?item=tree.jpg`);
	await copy.click();
	await announced(page, 'Folder and name: copied.');
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'tree.jpg');
	await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); });
	await copy.click();
	await announced(page, 'did not allow');
	await page.evaluate(() => {
		Object.defineProperty(navigator, 'clipboard', { value: undefined }); // as without https
		document.addEventListener('copy', () => { document.title = getSelection().toString(); });
	});
	await copy.click();
	await announced(page, 'Folder and name: copied.');
	assert.equal(await page.title(), 'tree.jpg');
	await page.evaluate(() => { document.execCommand = () => false; });
	await copy.click();
	await announced(page, 'did not allow');
	await accessible(page, 'a refused copy');
}
