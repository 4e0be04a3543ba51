// The notice about what lasts, the download, and a server that is gone for a while.
import { readFile } from 'node:fs/promises';
import { accessible, assert, facts, focused, open, person, shot } from './lib.mjs';

await person(async () => {
	const page = await open();
	const notice = page.getByRole('complementary', { name: 'Changes do not last' });

	// The configuration is downloaded, without secrets.
	await download(page, notice.getByRole('link', { name: 'Download the configuration' }));
	await notice.getByRole('button', { name: 'Dismiss' }).click();
	await notice.waitFor({ state: 'detached' });
	assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'the button is gone, the focus is not');
	await page.reload();
	await page.getByRole('link', { name: 'Health', exact: true }).click();
	await page.getByRole('list', { name: 'Service' }).waitFor();
	assert.equal(await notice.count(), 0, 'it stays dismissed');
	await download(page, page.getByRole('link', { name: 'Download', exact: true }));

	// Looking again leaves the reader where they are.
	const refresh = page.getByRole('button', { name: 'Refresh' });
	const refreshed = page.getByText(/^Refreshed at /);
	await page.getByText('What it guarantees').first().click();
	const storage = page.getByRole('link', { name: 'archive', exact: true });
	await storage.focus();
	await refresh.dispatchEvent('click');
	await refreshed.waitFor();
	assert.equal(await focused(page), 'archive');
	assert.equal(await page.locator('details[open]').count(), 1);
	await accessible(page, 'health');

	// The server is gone, and comes back.
	await page.context().setOffline(true);
	await refresh.click();
	await page.getByText('What is shown may be old.').waitFor();
	await accessible(page, 'health without a server');
	await shot(page, 'gone');
	await page.getByRole('link', { name: 'Items', exact: true }).click();
	await page.getByRole('alert').getByText('The server cannot be reached.').waitFor();
	assert.equal(await focused(page), 'Items');
	await page.context().setOffline(false);
	await page.getByRole('button', { name: 'Try again' }).click();
	await page.getByRole('region', { name: 'Contents' }).waitFor();
	await page.goBack();
	await refresh.click();
	await refreshed.waitFor();

	// What was typed while it was gone can be sent afterwards.
	await page.goto(`${facts.panel}#/storages/archive`);
	await page.getByLabel('Sub folder format', { exact: true }).fill('%Y/kept');
	await page.context().setOffline(true);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('alert').getByText(/it is not known whether this was done/).waitFor();
	await page.context().setOffline(false);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();

	// On a phone the notice takes one line until it is asked.
	const phone = await open({ width: 390, height: 844 });
	const small = phone.getByRole('complementary', { name: 'Changes do not last' });
	assert.equal(await small.getByText('--resume').first().isVisible(), false);
	await shot(phone, 'phone', false);
	await small.getByText('Changes do not outlast a restart').click();
	await small.getByText('--resume').first().waitFor();
	await accessible(phone, 'the notice on a phone');
	await shot(phone, 'phone-open', false);
});

/** Downloads by a link what must be the configuration of the app, without its secrets. */
async function download(page, link) {
	const [file] = await Promise.all([page.waitForEvent('download'), link.click()]);
	assert.equal(file.suggestedFilename(), 'media.json');
	const text = await readFile(await file.path(), 'utf8');
	assert.ok(JSON.parse(text).apps.media.storages.archive, text);
	for (const secret of facts.secrets) assert.ok(!text.includes(secret), 'a secret is downloaded');
}
