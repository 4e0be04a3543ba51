// An uploader: items and nothing else.
import { accessible, announced, assert, facts, item, open, run, shot, text, uploading } from './lib.mjs';

await run(async () => {
	const page = await open({ user: 'carla', height: 800 });
	await page.getByRole('heading', { level: 1, name: 'Items' }).waitFor();
	await page.getByRole('link', { name: /image-00\.jpg/ }).waitFor();
	assert.equal(await page.getByRole('complementary').count(), 0, 'notices');
	assert.equal(await page.locator('#nav').isVisible(), false, 'other pages');
	await plain(page, 'body');
	const top = await page.locator('.grid').evaluate((grid) => grid.getBoundingClientRect().top);
	assert.ok(top < 300, `the first image begins at ${top}`);
	await accessible(page, 'the items of an uploader');
	await shot(page, 'items', false);

	await uploading(page).choose({ name: 'new.jpg', mimeType: 'image/jpeg', buffer: Buffer.from(facts.more.image, 'base64') });
	await uploading(page).line('new.jpg').getByText(/^Stored as/).waitFor();
	await uploading(page).line('new.jpg').getByRole('link').click();
	const stored = item(page, 'new.jpg');
	await stored.getByLabel('Address', { exact: true }).waitFor();
	await plain(page, 'dialog');
	await accessible(page, 'an item of an uploader');
	await shot(page, 'item', false);
	await stored.getByRole('button', { name: 'Rename' }).click();
	await plain(page, 'dialog >> nth=1');
	await page.keyboard.press('Escape');
	await stored.getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('dialog', { name: 'Delete “new.jpg”?' }).getByRole('button', { name: 'Delete' }).click();
	await announced(page, 'new.jpg is deleted.');

	// A drop on a scrolled page is seen, and so is the reason of its refusal.
	await page.goto(new URL('#/items/img/content', page.url()).href);
	const last = page.getByRole('link', { name: /image-29\.jpg/ });
	await last.scrollIntoViewIfNeeded();
	await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
	const dragged = await page.evaluateHandle(() => {
		const data = new DataTransfer();
		data.items.add(new File(['x'], 'setup.exe'));
		return data;
	});
	await last.dispatchEvent('dragover', { dataTransfer: dragged });
	await page.getByText('Drop to upload to content').waitFor();
	const target = await page.locator('.drop-target').boundingBox();
	assert.ok(target.y >= 0 && target.y + target.height <= 800, `the target is at ${target.y}`);
	await accessible(page, 'a drag over the items');
	await shot(page, 'drag', false);
	await last.dispatchEvent('drop', { dataTransfer: dragged });
	await announced(page, '1 file not stored. setup.exe: .exe is not accepted');
	await page.locator('.drop-target').waitFor({ state: 'hidden' });
	await accessible(page, 'a refused drop');
	await shot(page, 'refused', false);
	await page.getByRole('button', { name: 'Show', exact: true }).click();
	const refused = await uploading(page).line('setup.exe').boundingBox();
	assert.ok(refused.y > 0 && refused.y < 800, `the reason is at ${refused.y}`);

	// Addresses of other pages show the items.
	for (const route of ['#/storages', '#/accounts', '#/health', '#/aliases/img/content']) {
		await page.goto(new URL(route, page.url()).href);
		await page.getByRole('link', { name: /image-00\.jpg/ }).waitFor();
		assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Items');
	}
	await page.goto(new URL('#/items/file/hidden', page.url()).href);
	await page.getByRole('alert').getByText('There is no').waitFor();

	const phone = await open({ user: 'carla', width: 390, height: 844, touch: true, dark: true });
	await phone.getByRole('link', { name: /image-00\.jpg/ }).waitFor();
	await phone.getByLabel('Select image-00.jpg').check();
	await phone.getByRole('button', { name: 'Move' }).click();
	await plain(phone, 'dialog');
	await shot(phone, 'move', false);
	await phone.keyboard.press('Escape');
	await accessible(phone, 'the items of an uploader on a phone');
	await shot(phone, 'phone', false);
	await uploading(phone).choose({
		name: 'spring-in-the-valley-2026.jpg', mimeType: 'image/jpeg', buffer: Buffer.from(facts.more.image, 'base64'),
	});
	await uploading(phone).line('spring-in-the-valley').getByText(/^Stored as/).waitFor();
	await phone.getByRole('button', { name: 'List', exact: true }).click();
	const row = phone.getByRole('rowheader', { name: 'spring-in-the-valley-2026.jpg' }).getByText('2026.jpg');
	assert.ok(await row.evaluate((name) => name.scrollWidth <= name.clientWidth && name.scrollHeight <= name.clientHeight), 'the end of a name');
	await accessible(phone, 'the rows of an uploader on a phone');
	await uploading(phone).choose(text('note.exe'));
	await uploading(phone).line('note.exe').getByText('.exe is not accepted').waitFor();
});

/** The words of an element are those of an editor. */
async function plain(page, element) {
	const words = await page.locator(element).innerText();
	assert.doesNotMatch(words, /storage|configuration|restart|hidden|account|alias|variant|rendition|template|sub folder|root/i);
}
