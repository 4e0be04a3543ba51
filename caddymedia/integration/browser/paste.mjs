// Images and files are pasted from the clipboard, except into a text.
import { announced, assert, facts, open, run, shot, uploading } from './lib.mjs';

await run(async () => {
	const page = await open({ route: '#/items/img/content' });
	const names = page.getByRole('list', { name: 'Uploads' }).getByRole('listitem').locator('.upload-name > span:first-child');
	const heading = page.getByRole('heading', { level: 1, name: 'Items' });

	// A copied image, by the keyboard.
	await page.evaluate(async (png) => {
		const blob = new Blob([Uint8Array.from(atob(png), (c) => c.charCodeAt(0))], { type: 'image/png' });
		await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })]);
	}, facts.more.png);
	await uploading(page).into('pasted');
	await heading.focus();
	await page.keyboard.press('Control+V');
	await announced(page, '1 file stored.');
	assert.match(await names.innerText(), /^pasted-\d{8}-\d{6}\.png$/);
	await page.getByRole('img', { name: /^Preview of pasted-/ }).waitFor();
	assert.match(page.url(), /#\/items\/img\/content\/pasted$/);
	await shot(page, 'pasted');

	// Not while a text is edited, in a dialog, or on a page without uploads.
	await uploading(page).options();
	await page.getByLabel('Into the folder').focus();
	await page.keyboard.press('Control+V');
	await page.getByRole('img', { name: /^Preview of pasted-/ }).click();
	await page.getByRole('dialog').waitFor();
	await page.keyboard.press('Control+V');
	await page.keyboard.press('Escape');
	await page.getByRole('dialog').waitFor({ state: 'detached' });
	assert.equal(await names.count(), 1);

	// Copied files keep their names.
	await page.evaluate(() => {
		const clipboardData = new DataTransfer();
		for (const name of ['one.svg', 'two.svg']) {
			clipboardData.items.add(new File(['<svg xmlns="http://www.w3.org/2000/svg"/>'], name, { type: 'image/svg+xml' }));
		}
		document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
	});
	await announced(page, '2 files stored.');
	assert.deepEqual((await names.allInnerTexts()).slice(1), ['one.svg', 'two.svg']);

	// A text is no file.
	await page.evaluate(() => navigator.clipboard.writeText('text'));
	await heading.focus();
	await page.keyboard.press('Control+V');
	assert.equal(await names.count(), 3);

	// Nor is a picture of the page that is dragged a little.
	await page.evaluate(() => addEventListener('dragover', ({ dataTransfer }) => { globalThis.dragged = [...dataTransfer.types]; }));
	await page.getByRole('img', { name: /^Preview of pasted-/ }).dragTo(heading);
	await page.waitForFunction(() => globalThis.dragged);
	assert.equal(await names.count(), 3);
});
