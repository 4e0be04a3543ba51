// The notice about unsaved changes, the download, the Caddyfile, and a server that fails and recovers.
import { readFile } from 'node:fs/promises';
import { accessible, announced, assert, facts, focused, open, run, shot } from './lib.mjs';

await run(async () => {
	const page = await open();
	const notice = page.getByRole('complementary', { name: 'Changes are lost on restart' });

	// The configuration is downloaded, without secrets.
	await download(page, notice.getByRole('link', { name: 'Download the configuration' }));
	await asCaddyfile(page, notice.getByRole('button', { name: 'As Caddyfile' }));
	await notice.getByRole('button', { name: 'Dismiss' }).click();
	await notice.waitFor({ state: 'detached' });
	assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'the button is gone, the focus is not');
	await page.reload();
	await page.getByRole('link', { name: 'Health', exact: true }).click();
	await page.getByRole('list', { name: 'Service' }).waitFor();
	assert.equal(await notice.count(), 0, 'it stays dismissed');
	await download(page, page.getByRole('link', { name: 'Download', exact: true }));
	await asCaddyfile(page, page.getByRole('button', { name: 'As Caddyfile' }));

	// A refresh keeps focus and opened details.
	const refresh = page.getByRole('button', { name: 'Refresh' });
	const refreshed = page.getByText(/^Refreshed at /);
	await page.getByText('Guarantees').first().click();
	const storage = page.getByRole('link', { name: 'archive', exact: true });
	await storage.focus();
	await refresh.dispatchEvent('click');
	await refreshed.waitFor();
	assert.equal(await focused(page), 'archive');
	assert.equal(await page.locator('details[open]').count(), 1);
	await accessible(page, 'health');

	// The server fails and recovers.
	await page.context().setOffline(true);
	await refresh.click();
	await page.getByText('The page may be out of date.').waitFor();
	await accessible(page, 'health without a server');
	await shot(page, 'gone');
	await page.getByRole('link', { name: 'Items', exact: true }).click();
	await page.getByRole('alert').getByText('The server is unreachable.').waitFor();
	assert.equal(await focused(page), 'Items');
	await page.context().setOffline(false);
	await page.getByRole('button', { name: 'Try again' }).click();
	await page.getByRole('region', { name: 'Contents' }).waitFor();
	await page.goBack();
	await refresh.click();
	await refreshed.waitFor();

	// Input made meanwhile can be saved afterwards.
	await page.goto(`${facts.panel}#/storages/archive`);
	await page.getByLabel('Sub folder format', { exact: true }).fill('%Y/kept');
	await page.context().setOffline(true);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('alert').getByText(/Check whether the change was made/).waitFor();
	await page.context().setOffline(false);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();

	// On a phone the notice has one line until it is opened.
	const phone = await open({ width: 390, height: 844 });
	const small = phone.getByRole('complementary', { name: 'Changes are lost on restart' });
	assert.equal(await small.getByText('--resume').first().isVisible(), false);
	await shot(phone, 'phone', false);
	await small.getByText('Changes are lost on restart').click();
	await small.getByText('--resume').first().waitFor();
	await accessible(phone, 'the notice on a phone');
	await shot(phone, 'phone-open', false);
});

/** Opens the configuration as a Caddyfile by the keyboard, copies it, and checks that it has no secrets. */
async function asCaddyfile(page, button) {
	await button.focus();
	await page.keyboard.press('Enter');
	const dialog = page.getByRole('dialog', { name: 'The configuration as Caddyfile' });
	const text = await dialog.getByLabel('Global option', { exact: true }).inputValue();
	assert.match(text, /^\tmedia \{$/m);
	assert.match(text, /^\t\taccount site-one \{env\.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH\}$/m);
	for (const secret of facts.secrets) assert.ok(!text.includes(secret), 'a secret is shown');
	await dialog.getByText('Variables', { exact: true }).click();
	await dialog.getByText('accounts/site-one/password_hash', { exact: true }).waitFor();
	await accessible(page, 'the configuration as Caddyfile');
	await shot(page, 'caddyfile', false);
	await dialog.getByRole('button', { name: 'Copy: Global option' }).click();
	await announced(page, 'Global option: copied.');
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
	await page.keyboard.press('Escape');
	await dialog.waitFor({ state: 'detached' });
	assert.equal(await focused(page), 'As Caddyfile', 'the focus comes back');
}

/** Downloads the configuration of the app by a link, and checks that it has no secrets. */
async function download(page, link) {
	const [file] = await Promise.all([page.waitForEvent('download'), link.click()]);
	assert.equal(file.suggestedFilename(), 'media.json');
	const text = await readFile(await file.path(), 'utf8');
	assert.ok(JSON.parse(text).apps.media.storages.archive, text);
	for (const secret of facts.secrets) assert.ok(!text.includes(secret), 'a secret is downloaded');
}
