// Uploads files on the documented page with tus-js-client.
import { assert, facts, open, run } from './lib.mjs';
import { continued, file, gate, logIn, outlast, record, renewed, stored, untilHeld } from './tusfiles.mjs';

const { step, state } = facts.more;
const choose = (page, name) => page.getByLabel('File').setInputFiles(file(name));
const button = (page, name) => page.getByRole('button', { name });
const hold = 4 << 20;

await run(async () => {
	if (step === 'after') { // a crash of the service, and the end of the browser
		const page = await open({ storageState: state });
		const requests = record(page);
		let tickets = 0;
		await page.route('**/media-ticket', async (route) => { // which are about to expire
			tickets++;
			const response = await route.fetch();
			await route.fulfill({ response, json: { ...await response.json(), expires_at: 0 } });
		});
		await page.getByText('crashed.txt is incomplete. Choose it again to continue.').waitFor();
		await choose(page, 'crashed.txt');
		await stored(page, 'crashed.txt');
		continued(requests, 0);
		assert.ok(tickets > requests.length, `${tickets} tickets for ${JSON.stringify(requests)}`);
		return;
	}

	const page = await open();
	await choose(page, 'disguise.txt');
	await page.getByText('You may not upload.').waitFor();
	await logIn(page);
	await page.reload();
	await choose(page, 'disguise.txt');
	await page.getByText(/disguise\.txt: .*PNG/).waitFor();

	let requests = record(page);
	await gate(page, 'cut', hold);
	await choose(page, 'cut.txt');
	await stored(page, 'cut.txt');
	continued(requests);

	requests.length = 0;
	await outlast(page);
	await choose(page, 'outlasting.txt');
	await stored(page, 'outlasting.txt');
	renewed(requests);

	requests.length = 0;
	await gate(page, 'hold', 20 << 20); // a crash may cost 16 MiB
	await choose(page, 'killed.txt');
	await untilHeld(page);
	await page.request.get(`${facts.panel}restart`, { timeout: 120_000 });
	await gate(page, 'release');
	await stored(page, 'killed.txt', 120_000); // the client waits up to 30 seconds between attempts
	continued(requests);

	requests.length = 0;
	await gate(page, 'hold', hold);
	await choose(page, 'paused.txt');
	await untilHeld(page);
	await button(page, 'Pause').click();
	await gate(page, 'release');
	const sent = requests.length;
	await button(page, 'Resume').click();
	await stored(page, 'paused.txt');
	continued(requests);
	assert.equal(requests[sent].method, 'HEAD');
	assert.equal(await page.locator('progress').evaluate((bar) => bar.value), 1);

	requests.length = 0;
	await gate(page, 'hold', hold);
	await choose(page, 'reloaded.txt');
	await untilHeld(page);
	await page.reload();
	await gate(page, 'release');
	await page.getByText('reloaded.txt is incomplete. Choose it again to continue.').waitFor();
	await choose(page, 'reloaded.txt');
	await stored(page, 'reloaded.txt');
	assert.equal(await page.getByText(/is incomplete/).count(), 0);
	continued(requests);
	await page.reload();
	await page.getByLabel('File').waitFor();
	assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), []);

	await gate(page, 'hold', hold);
	await choose(page, 'crashed.txt');
	await untilHeld(page);
	await page.context().storageState({ path: state });
	await page.goto('about:blank'); // released bytes must not end the upload
	await gate(page, 'release');
});
