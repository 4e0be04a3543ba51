// Uploads several files on the documented page with Uppy's Tus plugin.
import { assert, open, run } from './lib.mjs';
import { continued, file, gate, logIn, outlast, record, renewed, stored, untilHeld } from './tusfiles.mjs';

const choose = (page, ...names) => page.locator('input[type=file]').first().setInputFiles(names.map(file));

await run(async () => {
	const page = await visit();
	await choose(page, 'one.txt');
	await page.getByText('You may not upload.').waitFor();

	await logIn(page);
	await reload(page);
	const requests = record(page);
	await gate(page, 'cut', 2 << 20);
	await choose(page, 'one.txt', 'two.txt', 'three.txt');
	await stored(page, ['one.txt', 'two.txt', 'three.txt']);
	assert.equal(requests.filter(({ method }) => method === 'POST').length, 3, JSON.stringify(requests));
	assert.ok(requests.some(({ method }) => method === 'HEAD'), JSON.stringify(requests));

	await reload(page);
	requests.length = 0;
	await gate(page, 'hold', 4 << 20);
	await choose(page, 'reloaded.txt');
	await untilHeld(page);
	await reload(page);
	await gate(page, 'release');
	await choose(page, 'reloaded.txt');
	await stored(page, 'reloaded.txt');
	continued(requests);

	await reload(page);
	requests.length = 0;
	await gate(page, 'hold', 4 << 20);
	await choose(page, 'paused.txt');
	await untilHeld(page);
	await page.getByRole('button', { name: 'Pause' }).first().click();
	await gate(page, 'release');
	await page.getByRole('button', { name: 'Resume' }).first().click();
	await stored(page, 'paused.txt');
	continued(requests);

	await reload(page);
	requests.length = 0;
	await outlast(page);
	await choose(page, 'outlasting.txt');
	await stored(page, 'outlasting.txt');
	renewed(requests);

	await reload(page);
	await choose(page, 'removed.txt');
	await page.getByText('removed.txt is uploaded.').waitFor();
	const removed = page.waitForResponse((response) => response.request().method() === 'DELETE');
	await page.getByRole('button', { name: /^Remove/ }).click();
	assert.equal((await removed).status(), 204);
	assert.equal(await page.locator('[name="held[]"]').count(), 0);

	await choose(page, 'disguise.txt');
	await page.locator('#results li', { hasText: /disguise\.txt: .*PNG/ }).waitFor();
});

// Uppy logs its messages to the user to the console as well.
async function visit() {
	const page = await open();
	await page.evaluate(() => { console.error = () => {}; });
	return page;
}

async function reload(page) {
	await page.reload();
	await page.evaluate(() => { console.error = () => {}; });
}
