// Undo, the trash and the earlier versions of an item.
import { accessible, announced, assert, closed, controls, facts, focused, item, open, run, shot, uploading, visit } from './lib.mjs';

const items = '#/items/img/content';
const image = (n) => `image-${String(n).padStart(4, '0')}.jpg`;
const box = (page, name) => page.getByRole('checkbox', { name: `Select ${name}`, exact: true });
const bar = (page) => page.getByRole('region', { name: 'Selection' });
const dialog = (page, name) => page.getByRole('dialog', { name });
const rows = (page) => page.locator('table.items tbody tr');
const offers = (page) => page.getByRole('region', { name: 'Undo' });
const undo = (page) => offers(page).getByRole('button', { name: /^Undo/ });
const address = (kind, alias, filename) => new URL(`/static/${kind}/${alias}/${filename}`, facts.panel).href;
const status = async (filename, alias = 'content', kind = 'img') => (await fetch(address(kind, alias, filename))).status;

const bytes = async (alias, filename) => Buffer.from(await (await fetch(address('img', alias, filename))).arrayBuffer()).toString('base64');

/** Stores an image under a name. */
const store = (page, name, content) => page.evaluate(async ([name, content]) => {
	const [, folder, base] = /(.*)\/(.*)/.exec(name);
	const body = new FormData();
	body.append('files[]', new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], base, { type: 'image/jpeg' }));
	const answer = await fetch(`api/upload/img?alias=photos&sub_folder=${folder}`, { method: 'POST', body });
	const text = await answer.text();
	if (!answer.ok) throw new Error(text);
}, [name, content]);

await run(async () => {
	const page = await open({ route: items });
	await selection(page);
	await folder(page);
	await oneItem(page);
	await time(page);
	await keyboard(page);
	await stranded(page);
	await takenName(page);
	await offline(page);
	await trash(page);
	await manyEntries(page);
	await versions(page);
	await withoutTrash(page);
	await asItWas();
	await folderAsItWas();
	await onPhone();
	await uploader();
	await filesAsTheyWere();
});

/** The present time as its field has it, with a pause before and after: it has whole seconds. */
async function localTime(page) {
	await page.waitForTimeout(1500);
	const at = await page.evaluate(() => new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 19));
	await page.waitForTimeout(1500);
	return at;
}

/** The library becomes what it was at a time, and that is undone. */
async function asItWas() {
	const page = await open({ route: '#/trash/img/photos' });
	const at = await localTime(page);
	const before = await bytes('photos', 'summer/house.jpg');
	await page.evaluate(() => fetch('api/items/img/photos/summer/house.jpg', { method: 'DELETE' }).then((answer) => answer.text()));
	assert.equal(await status('summer/house.jpg', 'photos'), 404);
	const button = page.getByRole('button', { name: 'As it was at …' });
	await button.click();
	const question = dialog(page, 'As it was at …');
	await question.getByLabel('Date and time').fill(at);
	await accessible(page, 'the time of a library');
	await shot(page, 'as-it-was', false);
	await question.getByRole('button', { name: 'Show what changes' }).click();
	const plan = dialog(page, /^As it was at .*[0-9]/);
	await plan.getByText('Come back: 1 item').waitFor();
	await pictured(plan, 'Come back', 'house.jpg');
	await accessible(page, 'what a time changes');
	await shot(page, 'as-it-was-plan', false);
	await plan.getByRole('button', { name: 'Change 1 item' }).click();
	await offers(page).getByText('1 item back.').waitFor();
	assert.equal(await bytes('photos', 'summer/house.jpg'), before);
	await page.waitForTimeout(100);
	await undo(page).click();
	await offers(page).getByText('1 item in the trash.').waitFor();
	assert.equal(await status('summer/house.jpg', 'photos'), 404);
	await undo(page).click();
	await offers(page).getByText('1 item back.').waitFor();
	assert.equal(await bytes('photos', 'summer/house.jpg'), before);
}

/** Waits for the pictures of an item in a plan: one, or the present and the earlier one. */
async function pictured(plan, words, name, count = 1) {
	const images = plan.getByRole('list', { name: words }).getByRole('listitem').filter({ hasText: name }).locator('img');
	await images.nth(count - 1).waitFor();
	assert.equal(await images.count(), count);
	for (const image of await images.all()) await image.evaluate((image) => image.decode());
}

/** Checks the page in light and dark, on a screen and on a phone. */
async function inAllLooks(page, what) {
	const size = page.viewportSize();
	for (const [width, height, look] of [[1280, 900, 'wide'], [390, 844, 'phone']]) {
		await page.setViewportSize({ width, height });
		for (const colorScheme of ['dark', 'light']) {
			await page.emulateMedia({ colorScheme });
			await accessible(page, `${what}, ${look} and ${colorScheme}`);
			await shot(page, `${what}-${look}-${colorScheme}`, false);
		}
	}
	await page.setViewportSize(size);
}

/** A folder becomes what it was at a time, and the rest of the library stays; that is undone. */
async function folderAsItWas() {
	const page = await open({ route: '#/items/img/photos' });
	const at = await localTime(page);
	const first = await bytes('photos', 'album/1.jpg');
	const removed = (name) => page.evaluate((name) => fetch(`api/items/img/photos/${name}`, { method: 'DELETE' }).then((answer) => answer.text()), name);
	for (const n of [2, 3]) await removed(`album/${n}.jpg`);
	await removed('album/deep/4.jpg');
	await removed('summer/house.jpg');
	for (const [i, name] of ['album/1.jpg', 'album/fresh.jpg'].entries()) await store(page, name, facts.more.jpegs[i]);
	for (let n = 0; n < 14; n++) await store(page, `album/later/${n}.jpg`, facts.more.jpegs[n % 2]);
	assert.equal(await page.getByRole('button', { name: 'As it was at …' }).count(), 0, 'the whole library is on the page Trash');
	await page.getByRole('link', { name: 'album', exact: true }).click();
	const button = page.getByRole('button', { name: 'As it was at …' });
	await inAllLooks(page, 'folder');
	await button.focus();
	await page.keyboard.press('Enter');
	const question = dialog(page, '“album” as it was at …');
	await question.getByText('All items in the folder “album” and below it').waitFor();
	await question.getByLabel('Date and time').fill(at);
	await inAllLooks(page, 'folder-as-it-was');
	await question.getByRole('button', { name: 'Show what changes' }).click();
	const plan = dialog(page, /^“album” as it was at .*[0-9]/);
	await plan.getByText('Come back: 3 items').waitFor();
	await plan.getByText('Came later, and go to the trash: 15 items').waitFor();
	await plan.getByText('and 3 more').waitFor();
	await pictured(plan, 'Come back', '4.jpg');
	await pictured(plan, 'Get the earlier version', '1.jpg', 2);
	await pictured(plan, 'Came later, and go to the trash', 'fresh.jpg');
	assert.equal(await plan.getByText('house.jpg').count(), 0, 'another folder is in the plan');
	await inAllLooks(page, 'folder-plan');
	await plan.getByRole('button', { name: 'Change 19 items' }).click();
	await offers(page).getByText('3 items back, 1 item with the earlier version, 15 items in the trash.').waitFor();
	await page.getByRole('link', { name: '2.jpg' }).waitFor();
	assert.equal(await focused(page), 'As it was at …');
	assert.equal(await bytes('photos', 'album/1.jpg'), first);
	assert.deepEqual([await status('album/fresh.jpg', 'photos'), await status('summer/house.jpg', 'photos')], [404, 404]);

	// It is undone on another page, whose list shows that.
	await page.waitForTimeout(100);
	await page.getByRole('link', { name: 'photos', exact: true }).click();
	await page.getByRole('link', { name: 'tree.jpg' }).waitFor();
	await undo(page).click();
	await offers(page).getByText('1 item with the earlier version').waitFor();
	assert.deepEqual([await status('album/2.jpg', 'photos'), await status('album/fresh.jpg', 'photos'), await status('album/later/0.jpg', 'photos')], [404, 200, 200]);
}

/** A file library has names without pictures. */
async function filesAsTheyWere() {
	const page = await open({ route: '#/trash/file/content' });
	const at = await localTime(page);
	await page.evaluate(() => fetch('api/items/file/content/note.txt', { method: 'DELETE' }).then((answer) => answer.text()));
	await page.getByRole('button', { name: 'As it was at …' }).click();
	await dialog(page, 'As it was at …').getByLabel('Date and time').fill(at);
	await page.getByRole('button', { name: 'Show what changes' }).click();
	const plan = dialog(page, /^As it was at .*[0-9]/);
	await plan.getByRole('list', { name: 'Come back' }).getByText('note.txt').waitFor();
	assert.equal(await plan.locator('img').count(), 0);
	await inAllLooks(page, 'files-plan');
	await plan.getByRole('button', { name: 'Change 1 item' }).click();
	await offers(page).getByText('1 item back.').waitFor();
}

/** A selection is deleted, and is back by Undo. */
async function selection(page) {
	await box(page, image(0)).check();
	await box(page, image(1)).check();
	await bar(page).getByRole('button', { name: 'Delete' }).click();
	const question = dialog(page, 'Delete 2 items?');
	await question.getByText('You can have them back for 14 days.').waitFor();
	await question.getByRole('button', { name: 'Delete 2 items' }).click();
	await announced(page, '2 items deleted. Undo by Control Z.');
	await offers(page).getByText('2 items deleted.').waitFor();
	await page.waitForFunction(() => document.querySelector('dialog') === null);
	await accessible(page, 'Undo');
	await shot(page, 'undo', false);
	assert.equal(await status(image(0)), 404);
	await undo(page).click();
	await announced(page, '2 items are back.');
	await box(page, image(0)).waitFor();
	await box(page, image(1)).waitFor();
	assert.equal(await status(image(0)), 200);
	await undo(page).waitFor({ state: 'hidden' });
	assert.notEqual(await focused(page), '');
}

/** A folder of 30 items is deleted, and is back by Undo; what was deleted before stays deleted. */
async function folder(page) {
	await page.evaluate(() => fetch('api/items/img/content/old/image-0003.jpg', { method: 'DELETE' }).then((answer) => answer.text()));
	await page.getByRole('button', { name: 'Delete folder old' }).click();
	const question = dialog(page, 'Delete the folder “old”?');
	await question.getByText('You can have them back for 14 days.').waitFor();
	await shot(page, 'delete-folder', false);
	await question.getByLabel('Name of the folder').fill('old');
	await page.keyboard.press('Enter');
	await announced(page, 'The folder old is deleted, with 29 items.');
	assert.equal(await page.getByRole('link', { name: 'old', exact: true }).count(), 0);
	await undo(page).click();
	await announced(page, '29 items are back.');
	await page.getByRole('link', { name: 'old', exact: true }).waitFor();
	assert.deepEqual([await status(`old/older/${image(9)}`), await status(`old/${image(0)}`), await status(`old/${image(3)}`)], [200, 200, 404]);
}

/** The deletion in the dialog of an item is undone. */
async function oneItem(page) {
	await page.getByRole('link', { name: image(2) }).click();
	await item(page, image(2)).getByRole('button', { name: 'Delete' }).click();
	const question = dialog(page, `Delete “${image(2)}”?`);
	await question.getByText('You can have it back for 14 days.').waitFor();
	await question.getByRole('button', { name: 'Delete' }).click();
	await closed(page);
	await announced(page, `${image(2)} is deleted.`);
	await undo(page).click();
	await announced(page, `${image(2)} is back.`);
	await page.getByRole('link', { name: image(2) }).waitFor();
}

/** Deletes an item of the list by the keyboard. */
async function deleteByKey(page, name) {
	await page.getByRole('link', { name }).focus();
	await page.keyboard.press('Delete');
	await dialog(page, `Delete “${name}”?`).getByRole('button', { name: 'Delete 1 item' }).waitFor();
	await page.keyboard.press('Tab');
	await page.keyboard.press('Enter');
	await offers(page).getByText(`${name} is deleted.`).waitFor();
	await page.waitForFunction(() => document.querySelector('dialog') === null);
}

/** Undo stays for ten seconds, and for as long as it has the focus. */
async function time(page) {
	await page.clock.install();
	await page.reload();
	await page.getByRole('link', { name: image(3) }).waitFor();
	await deleteByKey(page, image(3));
	await page.clock.runFor(9000);
	assert.equal(await undo(page).count(), 1);
	await undo(page).focus();
	await page.clock.runFor(60_000);
	assert.equal(await undo(page).count(), 1, 'it goes while it has the focus');
	await page.getByRole('link', { name: image(4) }).focus();
	await page.clock.runFor(1250);
	assert.equal(await undo(page).count(), 0);
	await page.clock.resume();
}

/** Two deletions are undone by Ctrl+Z, the last one first. */
async function keyboard(page) {
	await deleteByKey(page, image(4));
	await deleteByKey(page, image(5));
	assert.equal(await undo(page).count(), 2);
	await shot(page, 'two', false);
	for (const n of [5, 4]) {
		await page.keyboard.press('Control+z');
		await announced(page, `${image(n)} is back.`);
		await page.getByRole('link', { name: image(n) }).waitFor();
		assert.notEqual(await focused(page), '', 'the focus is lost');
	}
	await page.keyboard.press('Control+z'); // nothing to undo
}

/** The focus returns when the message goes. */
async function stranded(page) {
	await deleteByKey(page, image(5));
	const before = await focused(page);
	await undo(page).focus();
	await page.keyboard.press('Escape');
	assert.equal(await undo(page).count(), 0);
	assert.equal(await focused(page), before);
	await page.evaluate(() => fetch('api/items/img/content?trash=1&limit=1').then((answer) => answer.json()).then(({ result: [{ id }] }) =>
		fetch('api/items/img/content', { method: 'POST', body: new URLSearchParams({ action: 'restore', id }) })));
}

/** An item whose name is taken by now is restored under another one. */
async function takenName(page) {
	await page.reload();
	await page.getByRole('link', { name: image(0) }).waitFor();
	await deleteByKey(page, image(0));
	await uploading(page).into('/');
	await uploading(page).choose({ name: image(0), mimeType: 'image/jpeg', buffer: Buffer.from(facts.more.jpegs[0], 'base64') });
	await uploading(page).line(image(0)).getByText(/^Stored as/).waitFor();
	await undo(page).click();
	const refused = dialog(page, 'The item is not restored');
	await refused.getByRole('list', { name: 'Failed' }).getByText('another item has this name, and the items of this library are never replaced').waitFor();
	await accessible(page, 'a name that is taken');
	await shot(page, 'taken', false);
	await refused.getByRole('button', { name: 'Restore under another name' }).click();
	await announced(page, /image-0000\.jpg is back as image-0000-\d+\.jpg\./);
}

/** Without a connection, or after the end of the session, Undo can be tried again. */
async function offline(page) {
	await deleteByKey(page, image(1));
	await page.context().setOffline(true);
	await undo(page).click();
	const failed = dialog(page, 'The item is not restored');
	await failed.getByText('The server is unreachable.').waitFor();
	await accessible(page, 'a failed Undo');
	await shot(page, 'offline', false);
	await page.context().setOffline(false);
	const loggedOut = (route) => route.fulfill({ status: 401, contentType: 'application/json', body: '{}' });
	await page.route('**/api/items/**', loggedOut);
	await failed.getByRole('button', { name: 'Try again' }).click();
	const [tab] = await Promise.all([page.waitForEvent('popup'), failed.getByRole('link', { name: 'Log in again' }).click()]);
	await tab.close();
	await page.unroute('**/api/items/**', loggedOut);
	await failed.getByRole('button', { name: 'Try again' }).click();
	await announced(page, `${image(1)} is back.`);
}

/** A folder is found in the trash by its name, and comes back as a whole. */
async function manyEntries(page) {
	await page.evaluate(() => fetch('api/items/img/content', { method: 'POST', body: new URLSearchParams({ action: 'delete', folder: 'many' }) }).then((answer) => answer.text()));
	await visit(page, '#/trash/img/content?search=many');
	await page.getByText('60 items so far').waitFor();
	await page.getByRole('checkbox', { name: 'Select all', exact: true }).check();
	await bar(page).getByRole('button', { name: 'Select the rest' }).press('Enter');
	await bar(page).getByText('70 items selected').waitFor();
	await page.evaluate(() => new Promise(requestAnimationFrame));
	assert.notEqual(await focused(page), '', 'the focus is lost with the button');
	await bar(page).getByRole('button', { name: 'Restore' }).click();
	await announced(page, '70 items are back.');
	await page.getByRole('heading', { name: 'Nothing left here' }).waitFor();
	assert.equal(await rows(page).count(), 0, 'restored entries are shown again');
	await accessible(page, 'all is restored');
	await shot(page, 'nothing-left', false);
	assert.deepEqual([await status(`many/${image(0)}`), await status(`many/${image(69)}`)], [200, 200]);
	await visit(page, '#/trash/img/content?item=unknown');
	await dialog(page, 'Deleted item').getByText('This is not in the trash any more.').waitFor();
	await accessible(page, 'an unknown entry');
	await visit(page, items);
}

/** The trash is searched, an entry is previewed, restored and removed for good, and all are. */
async function trash(page) {
	const { button } = controls(page);
	await page.getByRole('link', { name: 'Trash', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Trash' }).waitFor();
	assert.match(page.url(), /#\/trash\/img\/content$/);
	await page.getByText('What is deleted or replaced can be had back for 14 days.').waitFor();
	await rows(page).first().waitFor();
	assert.equal(await page.locator('#nav [aria-current]').innerText(), 'Items');
	await accessible(page, 'the trash');
	await shot(page, 'trash');

	await page.getByLabel('Search by name').fill('0003');
	await page.keyboard.press('Enter');
	await page.getByText('Found 3 items.').waitFor();
	assert.match(page.url(), /search=0003$/);
	const named = (filename) => rows(page).filter({ has: page.getByTitle(filename, { exact: true }) });
	await named(`old/${image(3)}`).getByRole('link').click();
	const entry = dialog(page, image(3));
	await entry.getByRole('img', { name: image(3) }).evaluate((image) => image.decode());
	await accessible(page, 'an entry of the trash');
	await shot(page, 'entry', false);
	const download = page.waitForEvent('download');
	await entry.getByRole('link', { name: 'Download' }).click();
	assert.equal((await download).suggestedFilename(), image(3));
	await entry.getByRole('button', { name: 'Restore' }).click();
	await announced(page, `${image(3)} is back.`);
	await page.getByText('Found 2 items.').waitFor();
	assert.equal(await status(`old/${image(3)}`), 200);
	assert.notEqual(await focused(page), '');

	// By the keyboard: an entry is selected and restored.
	await named(image(3)).getByRole('link').focus();
	await page.keyboard.press('Space');
	await bar(page).getByText('1 item selected').waitFor();
	await bar(page).getByRole('button', { name: 'Restore' }).focus();
	await page.keyboard.press('Enter');
	await page.getByText('Found 1 item.').waitFor();
	assert.equal(await status(image(3)), 200);
	await visit(page, '#/trash/img/content?search=nothing');
	await page.getByText('Nothing found').waitFor();
	await accessible(page, 'a search without a result');

	// For good.
	await page.evaluate(() => fetch('api/items/img/content', { method: 'POST', body: 'action=delete&folder=old/older', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }).then((answer) => answer.text()));
	await visit(page, '#/trash/img/content');
	const count = page.getByText(/^\d+ items\.$/);
	const before = parseInt(await count.innerText(), 10);
	const left = (n) => page.getByText(`${n} items.`, { exact: true }).waitFor();
	await rows(page).first().getByRole('link').focus();
	await page.keyboard.press('Delete');
	const question = dialog(page, /^Delete “image-.* for good\?$/);
	await question.getByText('Nobody can have it back.').waitFor();
	await shot(page, 'purge', false);
	await question.getByRole('button', { name: 'Delete for good' }).click();
	await announced(page, '1 item deleted for good.');
	await left(before - 1);
	await rows(page).first().getByRole('link').click();
	await page.getByRole('dialog').getByRole('button', { name: 'Delete for good' }).click();
	await dialog(page, /for good\?$/).getByRole('button', { name: 'Delete for good' }).click();
	await left(before - 2);
	await closed(page);
	await button('Empty the trash').click();
	await dialog(page, 'Empty the trash?').getByText('Nobody can have them back.').waitFor();
	await shot(page, 'empty-question', false);
	await dialog(page, 'Empty the trash?').getByRole('button', { name: 'Empty the trash' }).click();
	await announced(page, 'The trash is empty.');
	await page.getByRole('heading', { name: 'The trash is empty' }).waitFor();
	assert.equal(await button('Empty the trash').isVisible(), false);
	await accessible(page, 'an empty trash');
	await shot(page, 'empty');
	await page.getByRole('link', { name: 'Items of content' }).click();
	await page.getByRole('link', { name: image(3) }).waitFor();
}

/** An item is replaced twice, and its first version is brought back. */
async function versions(page) {
	await visit(page, '#/items/img/photos?item=tree.jpg');
	const shown = item(page, 'tree.jpg');
	await shown.getByText('320 × 240').waitFor();
	for (const [i, pixels] of ['500 × 100', '50 × 200'].entries()) {
		const chosen = page.waitForEvent('filechooser');
		await shown.getByRole('button', { name: 'Replace' }).click();
		await (await chosen).setFiles({ name: 'new.jpg', mimeType: 'image/jpeg', buffer: Buffer.from(facts.more.jpegs[i], 'base64') });
		await shown.getByText(pixels).waitFor();
	}
	await shown.getByText('Earlier versions', { exact: true }).click();
	const list = shown.getByRole('list', { name: 'Earlier versions' });
	await list.getByRole('listitem').first().waitFor();
	assert.equal(await list.getByRole('listitem').count(), 2);
	await accessible(page, 'earlier versions');
	await list.scrollIntoViewIfNeeded();
	await shot(page, 'versions', false);
	await list.getByRole('button', { name: /^Preview/ }).last().click();
	const preview = dialog(page, /^Version of/);
	await preview.getByRole('img').evaluate((image) => image.decode());
	assert.equal(await preview.getByRole('img').evaluate((image) => image.naturalWidth), 320);
	await accessible(page, 'the preview of a version');
	await page.keyboard.press('Escape');
	await list.getByRole('button', { name: /^Bring back/ }).last().focus();
	await page.keyboard.press('Enter');
	await shown.getByText('The earlier version is back.').waitFor();
	await shown.getByText('320 × 240').waitFor();
	const bytes = Buffer.from(await (await fetch(address('img', 'photos', 'tree.jpg'))).arrayBuffer()).toString('base64');
	assert.equal(bytes, facts.more.first, 'the bytes of the first version');
	await shown.getByText('Earlier versions', { exact: true }).click();
	await list.getByRole('listitem').nth(1).waitFor();
	await page.keyboard.press('Escape');

	// Of all versions in a selection the last one comes back.
	await page.evaluate(() => fetch('api/items/img/photos/tree.jpg', { method: 'DELETE' }).then((answer) => answer.text()));
	await visit(page, '#/trash/img/photos?search=tree');
	await page.getByText('Found 4 items.').waitFor();
	await page.getByRole('checkbox', { name: 'Select all', exact: true }).check();
	await bar(page).getByRole('button', { name: 'Restore' }).click();
	await announced(page, 'tree.jpg is back, in its last version.');
	const last = Buffer.from(await (await fetch(address('img', 'photos', 'tree.jpg'))).arrayBuffer()).toString('base64');
	assert.equal(last, facts.more.first, 'the bytes of the last version');

	// Where items are never replaced, a version comes back under another name.
	await visit(page, `${items}?item=${image(0)}`);
	await item(page, image(0)).getByText('Earlier versions', { exact: true }).click();
	await item(page, image(0)).getByText('There are none.').waitFor();
	await page.keyboard.press('Escape');
}

/** Without a trash a deletion says so, and there is no Undo. */
async function withoutTrash(page) {
	await visit(page, '#/items/file/plain?item=note.txt');
	const shown = item(page, 'note.txt');
	await shown.getByText('Folder and name').waitFor();
	assert.equal(await shown.getByText('Earlier versions', { exact: true }).count(), 0);
	await shown.getByRole('button', { name: 'Delete' }).click();
	await dialog(page, 'Delete “note.txt”?').getByText('This cannot be undone.').waitFor();
	await dialog(page, 'Delete “note.txt”?').getByRole('button', { name: 'Delete' }).click();
	await announced(page, 'note.txt is deleted.');
	assert.equal(await undo(page).count(), 0);
	await page.getByRole('link', { name: 'Trash', exact: true }).click();
	await page.getByText('trash 14d').waitFor();
	await accessible(page, 'an alias without a trash');
	await shot(page, 'off');
	await page.getByLabel('Library').selectOption('img/photos');
	await rows(page).first().waitFor();
	assert.match(page.url(), /#\/trash\/img\/photos$/);
}

async function onPhone() {
	const page = await open({ route: items, width: 360, height: 740, touch: true, dark: true });
	await box(page, image(1)).tap();
	await bar(page).getByRole('button', { name: 'Delete' }).tap();
	await dialog(page, /^Delete/).getByRole('button', { name: 'Delete 1 item' }).tap();
	await undo(page).waitFor();
	await page.waitForFunction(() => document.querySelector('dialog') === null);
	await accessible(page, 'Undo on a phone');
	await shot(page, 'undo-phone', false);
	await page.getByRole('link', { name: 'Trash', exact: true }).tap();
	await rows(page).first().waitFor();
	await accessible(page, 'the trash on a phone');
	await shot(page, 'trash-phone', false);
	await rows(page).getByRole('checkbox').first().tap();
	await accessible(page, 'a selection in the trash on a phone');
	await shot(page, 'selected-phone', false);
	await rows(page).getByRole('link').first().tap();
	await dialog(page, image(1)).getByRole('img', { name: image(1) }).waitFor();
	await accessible(page, 'an entry on a phone');
	await shot(page, 'entry-phone', false);
	await dialog(page, image(1)).getByRole('button', { name: 'Restore' }).tap();
	await announced(page, `${image(1)} is back.`);
	await visit(page, '#/items/img/photos?item=tree.jpg');
	await item(page, 'tree.jpg').getByText('Earlier versions', { exact: true }).tap();
	await page.getByRole('list', { name: 'Earlier versions' }).getByRole('listitem').first().waitFor();
	await accessible(page, 'earlier versions on a phone');
	await page.getByRole('list', { name: 'Earlier versions' }).scrollIntoViewIfNeeded();
	await shot(page, 'versions-phone', false);
}

/** An uploader restores, and removes nothing for good. */
async function uploader() {
	const page = await open({ user: 'carla', route: '#/items/file/content?item=note.txt' });
	await item(page, 'note.txt').getByRole('button', { name: 'Delete' }).click();
	await dialog(page, 'Delete “note.txt”?').getByRole('button', { name: 'Delete' }).click();
	await closed(page);
	await page.getByRole('link', { name: 'Trash', exact: true }).click();
	await rows(page).getByRole('link').click();
	await dialog(page, 'note.txt').locator('pre').getByText('first').waitFor();
	assert.equal(await page.getByRole('button', { name: 'Delete for good' }).count(), 0);
	assert.equal(await page.getByRole('button', { name: 'Empty the trash' }).count(), 0);
	await accessible(page, 'the trash of an uploader');
	await shot(page, 'uploader', false);
	await dialog(page, 'note.txt').getByRole('button', { name: 'Restore' }).click();
	await page.getByRole('heading', { name: 'Nothing left here' }).waitFor();
	assert.equal(await status('note.txt', 'content', 'file'), 200);
}
