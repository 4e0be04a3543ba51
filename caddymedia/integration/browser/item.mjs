// One item: its neighbours by keyboard, copied as text, replaced, renamed and deleted.
import { accessible, announced, assert, closed, facts, focused, item, open, run, shot } from './lib.mjs';

const jpeg = (name) => Buffer.from(facts.more.jpegs[name], 'base64');
const address = (page, end) => page.waitForFunction((end) => decodeURIComponent(location.hash).endsWith(end), end);

async function statusOf(address) {
	const answer = await fetch(address);
	await answer.arrayBuffer(); // an open connection would keep the script from ending
	return answer.status;
}

/** Sends a request of another user, who replaces an item. */
const replaceElsewhere = (page, route, body) =>
	page.evaluate(async ([route, body]) => {
		const answer = await fetch(`api/items/${route}`, {
			method: 'PUT', headers: { 'If-Match': '*' }, body: Uint8Array.from(atob(body), (c) => c.charCodeAt(0)),
		});
		await answer.text();
		return answer.status;
	}, [route, body.toString('base64')]);

await run(async () => {
	const page = await open({ route: '#/items/img/content' });
	await neighbours(page);
	await copies(page);
	await renames(page);
	await replaces(page);
	await deletes(page);
	await onPhone();
	await viewer();
});

/** Opens an item by its address, after the one that is open. */
async function show(page, alias, filename) {
	if (await page.getByRole('dialog').count() > 0) await page.keyboard.press('Escape');
	await closed(page);
	await page.goto(`${facts.panel}#/items/${alias}?item=${encodeURIComponent(filename)}`);
	const dialog = item(page, filename.split('/').at(-1));
	await dialog.getByRole('link', { name: 'Open', exact: true }).waitFor();
	return dialog;
}

/** Arrow keys and buttons show the neighbours in the same dialog; the address and the focus follow. */
async function neighbours(page) {
	const key = (name) => page.keyboard.press(name);
	await page.getByRole('main').getByRole('link', { name: /\bb\.jpg/ }).click();
	await item(page, 'b.jpg').getByText('321 × 240').waitFor();
	const dialog = await page.getByRole('dialog').elementHandle();
	await key('ArrowRight');
	await item(page, 'c.jpg').getByText('322 × 240').waitFor();
	await address(page, '?item=c.jpg');
	await announced(page, 'c.jpg');
	assert.equal(await focused(page), 'Close');
	await key('ArrowLeft');
	await key('ArrowLeft');
	await item(page, 'a.jpg').getByText('320 × 240').waitFor();
	await key('ArrowLeft');
	await announced(page, 'There is no previous item in the list.');
	await item(page, 'a.jpg').getByRole('button', { name: 'Next' }).click();
	await item(page, 'b.jpg').getByText('321 × 240').waitFor();
	assert.equal(await focused(page), 'Next');
	assert.equal(await dialog.isVisible(), true, 'it is the same dialog');

	// Fields keep their keys; a removed button does not take the focus with it.
	await item(page, 'b.jpg').getByLabel('Address', { exact: true }).focus();
	await key('ArrowRight');
	await page.evaluate(() => new Promise(requestAnimationFrame));
	assert.equal(await item(page, 'b.jpg').isVisible(), true);
	await item(page, 'b.jpg').getByRole('button', { name: 'Rename' }).focus();
	await key('ArrowRight');
	await item(page, 'c.jpg').getByText('322 × 240').waitFor();
	assert.equal(await focused(page), 'Next');
	await key('ArrowRight');
	await key('ArrowRight');
	await announced(page, 'There is no next item in the list.');
	await accessible(page, 'the last item');
	await shot(page, 'neighbour', false);

	// One step back closes it, and the focus is at the last item.
	await key('Escape');
	await page.waitForFunction(() => location.hash === '#/items/img/content');
	assert.match(await focused(page), /d\.jpg/);
	await page.getByRole('main').getByRole('link', { name: /\ba\.jpg/ }).click();
	await item(page, 'a.jpg').getByText('320 × 240').waitFor();
	await key('ArrowRight');
	await address(page, '?item=b.jpg');
	await page.reload();
	await item(page, 'b.jpg').getByText('321 × 240').waitFor();
	await page.goBack();
	await page.waitForFunction(() => !document.querySelector('dialog'));
}

/** An item is copied as the text that is chosen, which is remembered. */
async function copies(page) {
	let dialog = await show(page, 'img/content', 'a.jpg');
	const url = await dialog.getByLabel('Address', { exact: true }).inputValue();
	await dialog.getByLabel('Copy as').selectOption('Markdown');
	await dialog.getByLabel('Alternative text').fill('A [red] tree');
	await dialog.getByRole('button', { name: 'Copy: Markdown' }).click();
	await announced(page, 'Markdown: copied.');
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `![A \\[red\\] tree](${url})`);
	dialog = await show(page, 'file/content', 'a [b] (c).txt');
	const markdown = await dialog.getByLabel('Markdown', { exact: true }).inputValue();
	assert.match(markdown, /^\[a \\\[b\\\] \(c\)\.txt\]\(\S+\/a%20%5Bb%5D%20%28c%29\.txt\)$/);
	assert.equal(await statusOf(/\]\((\S+)\)$/.exec(markdown)[1]), 200);
	await dialog.getByLabel('Copy as').selectOption('HTML link');
	assert.match(await dialog.getByLabel('HTML link', { exact: true }).inputValue(), /^<a href="\S+">a \[b\] \(c\)\.txt<\/a>$/);
}

/** An item gets another name, by keyboard, and another folder; a refusal is beside the name. */
async function renames(page) {
	let dialog = await show(page, 'img/content', 'b.jpg');
	const old = await dialog.getByLabel('Address', { exact: true }).inputValue();
	await dialog.getByRole('button', { name: 'Rename' }).press('Enter');
	const form = item(page, 'Rename b.jpg');
	const name = form.getByLabel('Name', { exact: true });
	assert.deepEqual(await name.evaluate((input) => [input.selectionStart, input.selectionEnd, input === document.activeElement]), [0, 1, true]);
	await page.keyboard.type('C');
	await page.keyboard.press('Enter');
	await form.getByRole('alert').getByText('There is already an item of this name').waitFor();
	assert.equal(await name.getAttribute('aria-invalid'), 'true');
	assert.equal(await name.evaluate((input) => input === document.activeElement), true);
	await accessible(page, 'a refused name');
	await shot(page, 'rename', false);
	await name.fill('b.png');
	await page.keyboard.press('Enter');
	await form.getByRole('alert').getByText(/png/).waitFor();
	await name.fill('Big tree.jpg');
	await page.keyboard.press('Enter');
	dialog = item(page, 'big-tree.jpg');
	await dialog.getByRole('status').getByText('Renamed to big-tree.jpg. The old address no longer works.').waitFor();
	await address(page, '?item=big-tree.jpg');
	assert.notEqual(await focused(page), '');
	assert.equal(await statusOf(old), 404);
	assert.equal(await statusOf(await dialog.getByLabel('Address', { exact: true }).inputValue()), 200);
	await page.getByRole('main').getByRole('link', { name: /big-tree\.jpg/, includeHidden: true }).waitFor();
	await accessible(page, 'a renamed item');
	await shot(page, 'renamed', false);

	// Into a folder: the list no longer has it.
	await dialog.getByRole('button', { name: 'Rename' }).click();
	await item(page, 'Rename big-tree.jpg').getByLabel('Folder', { exact: true }).fill('sub/new');
	await page.keyboard.press('Enter');
	await dialog.getByRole('status').getByText('Renamed to sub/new/big-tree.jpg.').waitFor();
	assert.equal(await dialog.getByLabel('Folder and name', { exact: true }).inputValue(), 'sub/new/big-tree.jpg');
	await page.getByRole('main').getByRole('link', { name: /big-tree\.jpg/, includeHidden: true }).waitFor({ state: 'detached' });
	await page.keyboard.press('Escape');
	await page.waitForFunction(() => !document.querySelector('dialog'));
	assert.notEqual(await focused(page), '');

	// Where items are replaced, a rename replaces none, not even by the name after its conversion.
	dialog = await show(page, 'img/photos', 'one.jpg');
	await dialog.getByRole('button', { name: 'Rename' }).click();
	const other = item(page, 'Rename one.jpg');
	await other.getByLabel('Name', { exact: true }).fill('TWÓ.JPG');
	await page.keyboard.press('Enter');
	await other.getByRole('alert').getByText('There is already an item of this name').waitFor();
	await other.getByRole('button', { name: 'Cancel' }).click();
	assert.equal(await focused(page), 'Rename');
	await dialog.getByRole('button', { name: 'Rename' }).click();
	await other.getByLabel('Name', { exact: true }).fill('Škola на Kampě.jpg');
	await page.keyboard.press('Enter');
	dialog = item(page, 'skola-na-kampe.jpg');
	await dialog.getByRole('status').getByText('Renamed to skola-na-kampe.jpg.').waitFor();
	await dialog.getByRole('button', { name: 'Rename' }).click();
	await item(page, 'Rename skola-na-kampe.jpg').getByLabel('Name', { exact: true }).fill('one.jpg');
	await page.keyboard.press('Enter');
	await item(page, 'one.jpg').getByRole('status').getByText('Renamed to one.jpg.').waitFor();
}

async function choose(page, button, name, buffer) {
	const [chooser] = await Promise.all([page.waitForEvent('filechooser'), button.click()]);
	await chooser.setFiles({ name, mimeType: 'image/jpeg', buffer });
}

/** An item is replaced, if its alias overwrites and nobody else has replaced it. */
async function replaces(page) {
	let dialog = await show(page, 'img/content', 'a.jpg');
	await dialog.getByRole('button', { name: 'Replace' }).click();
	const why = item(page, 'Items here are not replaced');
	await why.getByText('Upload the new file', { exact: false }).waitFor();
	await accessible(page, 'no replacing');
	await shot(page, 'kept', false);
	await why.getByRole('button', { name: 'Close' }).last().click();
	assert.equal(await focused(page), 'Replace');

	dialog = await show(page, 'img/photos', 'one.jpg');
	const button = dialog.getByRole('button', { name: 'Replace' });
	const close = (name) => item(page, name).getByRole('button', { name: 'Close' }).last().click();
	await choose(page, button, 'one.png', jpeg('new'));
	await item(page, 'This file has another type').getByText('choose a file that ends with .jpg').waitFor();
	await close('This file has another type');
	await choose(page, button, 'other.jpg', Buffer.from(facts.more.png, 'base64'));
	await item(page, 'The item was not replaced').getByText(/content is PNG/).waitFor();
	await close('The item was not replaced');
	await choose(page, button, 'other.JPEG', jpeg('new'));
	await dialog.getByRole('status').getByText('The item is replaced. Others may still see the old one for 1 hour.').waitFor();
	await dialog.getByText('500 × 100').waitFor();
	await page.waitForFunction(() => document.querySelector('dialog img')?.naturalWidth === 500);
	await accessible(page, 'a replaced item');
	await shot(page, 'replaced', false);

	// Another user was faster.
	assert.equal(await replaceElsewhere(page, 'img/photos/one.jpg', jpeg('newer')), 200);
	await choose(page, button, 'one.jpg', jpeg('new'));
	await dialog.getByRole('status').getByText('The item was not replaced: somebody else has changed it. This is the new one.').waitFor();
	await dialog.getByText('50 × 200').waitFor();
	await page.waitForFunction(() => document.querySelector('dialog img')?.naturalWidth === 50);

	// A text of the same length in the same second.
	dialog = await show(page, 'file/notes', 'note.txt');
	await dialog.locator('pre').filter({ hasText: 'first' }).waitFor();
	await choose(page, dialog.getByRole('button', { name: 'Replace' }), 'n.txt', Buffer.from('later'));
	await dialog.locator('pre').filter({ hasText: 'later' }).waitFor();
	await dialog.getByRole('status').getByText('Others see the new one from now on.').waitFor();
}

/** An item that somebody else has changed is shown, not deleted. */
async function deletes(page) {
	const dialog = await show(page, 'img/photos', 'one.jpg');
	const confirm = async () => {
		await dialog.getByRole('button', { name: 'Delete' }).click();
		await item(page, 'Delete “one.jpg”?').getByRole('button', { name: 'Delete' }).click();
	};
	assert.equal(await replaceElsewhere(page, 'img/photos/one.jpg', jpeg('new')), 200);
	await confirm();
	await dialog.getByRole('status').getByText('The item was not deleted: somebody else has changed it.').waitFor();
	await dialog.getByText('500 × 100').waitFor();
	await confirm();
	await announced(page, 'one.jpg is deleted.');
	await page.waitForFunction(() => location.hash === '#/items/img/photos');
	assert.match(await focused(page), /two\.jpg/);
}

async function onPhone() {
	const page = await open({ route: '#/items/img/content?item=d.jpg', width: 390, height: 844, dark: true });
	const dialog = item(page, 'd.jpg');
	await dialog.getByText('323 × 240').waitFor();
	const image = await dialog.getByRole('img', { name: 'd.jpg' }).boundingBox();
	assert.ok(image.y < 200, `the preview is at ${image.y}`);
	for (const name of ['Previous', 'Next', 'Rename', 'Replace', 'Delete']) {
		const box = await dialog.getByRole('button', { name, exact: true }).boundingBox();
		assert.ok(box.y + box.height < 844 && box.height >= 24, `${name} is at ${box.y}`);
	}
	await accessible(page, 'an item on a phone');
	await shot(page, 'phone', false);
	await dialog.getByRole('button', { name: 'Rename' }).click();
	await accessible(page, 'renaming on a phone');
	await shot(page, 'phone-rename', false);
}

/** A viewer may look at it and copy it. */
async function viewer() {
	const page = await open({ route: '#/items/img/content?item=d.jpg', user: 'viewer' });
	const dialog = item(page, 'd.jpg');
	await dialog.getByText('323 × 240').waitFor();
	assert.deepEqual(await dialog.getByRole('button').allInnerTexts().then((texts) => texts.filter((text) => !/^(|Copy|Previous|Next)$/.test(text.trim()))), []);
}
