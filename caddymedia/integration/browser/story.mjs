// The first hour of a new administrator: from the example to an image on a new storage.
import { accessible, assert, controls, drop, facts, logIn, open, run, shot } from './lib.mjs';

const { sftp, image } = facts.more;

await run(async () => {
	const page = await open();
	const { button, link, field } = controls(page);

	// The notice says that changes are lost on restart, and how to keep them.
	const notice = page.getByRole('complementary', { name: 'Changes are lost on restart' });
	await notice.getByText('--resume', { exact: false }).first().waitFor();
	// Another says whose password is public, on each page and after a reload, without a way to dismiss it.
	const everyone = page.getByRole('complementary', { name: 'Public password' });
	await everyone.getByText('account try-out, panel user admin. Replace it: caddy media account <name> prints another one').waitFor();
	assert.equal(await everyone.getByRole('button').count(), 0);
	await shot(page, '1-start');
	await accessible(page, 'the start');
	await page.setViewportSize({ width: 320, height: 640 });
	await accessible(page, 'the start on a narrow screen');
	await shot(page, '1-narrow');
	await page.setViewportSize({ width: 1280, height: 900 });

	// An SFTP storage, with a wrong password.
	await link('Add storage').click();
	await field('Name').fill('archive');
	await page.getByRole('radio', { name: 'SFTP' }).check();
	await field('Address').fill(sftp.address);
	await field('User').fill(sftp.user);
	await field('Password').fill('not this one');
	await button('Ask the host for its key').click();
	const shown = page.getByRole('dialog', { name: 'Is this the key of the host?' });
	await accessible(page, 'the key of a host');
	assert.match(await shown.getByLabel('Fingerprint', { exact: true }).inputValue(), /^SHA256:/);
	await shown.getByRole('button', { name: 'Trust this key' }).click();
	// The dialog has a field of the same name, and is in the page for a moment after it is closed.
	await page.locator('dialog').waitFor({ state: 'detached' });
	const key = await field('Host key').inputValue();
	assert.equal(key, sftp.hostKey.split(' ').slice(0, 2).join(' '));
	await field('Root').fill('pictures');
	await button('Test').click();
	const result = page.getByRole('region', { name: 'Result of the test' });
	await result.getByText('The test failed').waitFor();
	await result.getByText(/refused the login/).waitFor();
	await shot(page, '2-wrong-password');
	await accessible(page, 'a failed test');

	// Fixed.
	await field('Password').fill(sftp.password);
	await button('Test').click();
	await result.getByText('The test succeeded').waitFor();
	await result.getByRole('heading', { name: 'Guarantees of this storage' }).waitFor();
	await shot(page, '3-test-succeeded');
	await button('Add storage').click();
	await page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();
	await link('archive').waitFor();

	// An alias on it.
	await link('Aliases').click();
	await link('Add image alias').click();
	await field('Name').fill('photos');
	await field('Storage').selectOption('archive');
	await field('WebP').check();
	await shot(page, '4-alias');
	await button('Add image alias').click();
	await page.getByRole('link', { name: 'photos', exact: true }).waitFor();

	// An account, whose password is shown once.
	await link('Accounts').click();
	await link('Add account').click();
	await field('API key').fill('gallery');
	await field('photos').check();
	await button('Add account').click();
	const once = page.getByRole('dialog', { name: 'The new password' });
	const password = await once.getByLabel('Password', { exact: true }).inputValue();
	await shot(page, '5-password', false);
	await once.getByRole('button', { name: 'I have saved it' }).click();
	await link('gallery').waitFor();
	await page.reload();
	await link('gallery').waitFor();
	assert.ok(!(await page.content()).includes(password), 'the password is shown again');
	assert.equal((await logIn('gallery', password)).status, 200, 'logging in with the shown password');

	// The public password of the other account is changed, that of the user stays.
	await button('New password for try-out').click();
	await button('Set new password').click();
	await once.getByRole('button', { name: 'I have saved it' }).click();
	await everyone.getByText('It is in the documentation: panel user admin.').waitFor();
	await page.reload();
	await everyone.getByText('panel user admin.').waitFor();

	// An image, dropped.
	await link('Items').click();
	await field('Library').selectOption('img/photos');
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	await drop(page, page.getByRole('region', { name: 'Upload', exact: true }), [{ type: 'image/jpeg', ...image }]);
	const stored = page.getByRole('list', { name: 'Uploads' }).getByText('Stored as');
	await stored.waitFor();
	const thumbnail = page.getByRole('img', { name: /^Preview of sunset-/ });
	await thumbnail.waitFor();
	await page.waitForFunction((img) => img.complete && img.naturalWidth > 0, await thumbnail.elementHandle());
	await shot(page, '6-thumbnail');

	// Its address, copied, opens.
	await thumbnail.click();
	const item = page.getByRole('dialog');
	await item.getByRole('button', { name: 'Copy: Address' }).click();
	const address = await page.evaluate(() => navigator.clipboard.readText());
	assert.match(address, /\/static\/img\/photos\/\d\d-\d\d\/\d\d\/sunset-over-brno\.jpg$/);
	assert.match(await item.getByLabel('HTML picture', { exact: true }).inputValue(), /<picture>[\s\S]*sunset-over-brno\.jpg\.webp[\s\S]*<img/);
	await item.getByLabel('Copy as', { exact: true }).selectOption('Template function');
	assert.match(await item.getByLabel('Template function', { exact: true }).inputValue(), /^{{image_path "photos"}}\/\d\d-\d\d\/\d\d\/sunset-over-brno\.jpg$/);
	await page.waitForFunction(() => document.querySelector('dialog img')?.naturalWidth > 0);
	await shot(page, '7-item', false);
	await accessible(page, 'an item');
	const opened = page.context().waitForEvent('page');
	await item.getByRole('link', { name: 'Open', exact: true }).click();
	const tab = await opened;
	await tab.waitForLoadState();
	assert.equal(tab.url(), address);
	await tab.close();
	assert.equal((await fetch(address)).status, 200);

	// Deleted, with its variant.
	await item.getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('dialog', { name: /^Delete/ }).getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	assert.equal((await fetch(address)).status, 404);
	assert.equal((await fetch(address + '.webp')).status, 404);

	// A storage in use by an alias cannot be removed.
	await link('Storages').click();
	await button('Remove archive').click();
	const used = page.getByRole('dialog', { name: /in use/ });
	await shot(page, '8-in-use', false);
	await used.getByRole('link', { name: /photos/ }).click();
	await button('Remove photos').click();
	await button('Remove image alias').click();
	await page.getByRole('dialog', { name: /in use/ }).getByRole('link', { name: /gallery/ }).click();
	await field('photos').uncheck();
	await field('content').check();
	await button('Save').click();
	await page.getByRole('heading', { level: 1, name: 'Accounts' }).waitFor();
	await link('Aliases').click();
	await button('Remove photos').click();
	await button('Remove image alias').click();
	await page.getByRole('link', { name: 'photos', exact: true }).waitFor({ state: 'detached' });
	await link('Storages').click();
	await button('Remove archive').click();
	await button('Remove storage').click();
	await page.getByRole('link', { name: 'archive', exact: true }).waitFor({ state: 'detached' });
	await page.getByRole('link', { name: 'default', exact: true }).waitFor();
});
