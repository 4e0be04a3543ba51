// An account from its first password to its end.
import { accessible, announced, assert, controls, facts, focused, logIn, open, run, shot } from './lib.mjs';

await run(async () => {
	const page = await open({ route: '#/accounts' });
	const { button, link, field } = controls(page);
	const once = page.getByRole('dialog', { name: 'The new password' });
	const keep = async () => {
		const password = await once.getByLabel('Password', { exact: true }).inputValue();
		assert.ok(password.length >= 20);
		await once.getByRole('button', { name: 'I have saved it' }).click();
		return password;
	};

	// A name is suggested; an existing one is refused.
	await link('Add account').first().click();
	assert.match(await field('API key').inputValue(), /^site-\w{8}$/);
	await field('API key').fill('site-one');
	await button('Add account').click();
	await page.getByRole('alert').getByText('The name “site-one” is used by another account.').waitFor();
	assert.equal(await field('API key').getAttribute('aria-invalid'), 'true');
	await accessible(page, 'an account whose name is taken');

	// Created. Going back does not lose the password before it was saved.
	await field('API key').fill('gallery');
	await button('Add account').click();
	await once.getByRole('button', { name: 'Copy: Password' }).click();
	await announced(page, 'Password: copied.');
	await accessible(page, 'a new password');
	await page.keyboard.press('Escape');
	await once.getByRole('button', { name: 'I have saved it' }).waitFor();
	await page.goBack();
	const leave = page.getByRole('dialog', { name: 'Leave without saving?' });
	await leave.getByText('The new password will not be shown again.').waitFor();
	await leave.getByRole('button', { name: 'Cancel' }).click();
	const copied = await page.evaluate(() => navigator.clipboard.readText());
	const first = await keep();
	assert.equal(copied, first);
	await link('gallery').waitFor();
	await announced(page, 'The account “gallery” is saved.');
	const { token } = await mayLogIn(first);
	assert.equal(await upload(token, 'content'), 200);

	// New password: the old one and its tokens are invalid.
	await button('New password for gallery').click();
	await button('Set new password').click();
	const second = await keep();
	assert.notEqual(second, first);
	assert.equal(await focused(page), 'New password for gallery', 'the focus comes back');
	assert.equal((await logIn('gallery', first)).status, 401);
	assert.equal(await upload(token, 'content'), 401);
	const renewed = await mayLogIn(second);
	assert.equal(await upload(renewed.token, 'content'), 200);

	// Its tokens are ended, its password stays.
	await button('End tokens of gallery').click();
	await page.getByRole('dialog').getByRole('button', { name: 'End tokens' }).click();
	await announced(page, '1 token of “gallery” ended.');
	assert.equal(await upload(renewed.token, 'content'), 401);
	await shot(page, 'ended', false);

	// Limited to one alias.
	await link('Edit gallery').click();
	await field('docs').check();
	const rights = page.getByRole('group', { name: 'May', exact: true });
	assert.equal(await rights.getByRole('checkbox').count(), 10);
	for (const right of ['Upload', 'Delete']) await rights.getByLabel(right, { exact: true }).check();
	const [above, below] = [await page.getByRole('group', { name: 'May use' }).boundingBox(), await rights.boundingBox()];
	assert.ok(below.y >= above.y + above.height + 12, 'the fields are apart');
	await accessible(page, 'the rights of an account');
	await shot(page, 'rights');
	await button('Save').click();
	await page.getByText('May delete, upload in docs').waitFor();
	const limited = await mayLogIn(second);
	assert.equal(await upload(limited.token, 'docs'), 200);
	assert.notEqual(await upload(limited.token, 'content'), 200);

	// With a secret for S3, which is not shown again, it has settings to copy.
	const secret = 'a secret that is not for eyes';
	assert.equal(await button('S3 settings of gallery').count(), 0);
	await link('Edit gallery').click();
	await field('S3 secret').fill(secret);
	await accessible(page, 'the secret of an account for S3');
	await button('Save').click();
	await button('S3 settings of gallery').focus();
	await page.keyboard.press('Enter');
	const settings = page.getByRole('dialog', { name: 'S3 settings of “gallery”' });
	await settings.getByText('file-docs', { exact: true }).waitFor();
	await settings.getByText('Caddy has no site with media_s3 yet.').waitFor();
	await settings.getByRole('button', { name: 'Copy: rclone, in its configuration file' }).click();
	await announced(page, 'rclone, in its configuration file: copied.');
	assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^access_key_id = gallery$/m);
	await accessible(page, 'the settings of an account for S3');
	await shot(page, 's3');
	await page.keyboard.press('Escape');
	assert.equal(await focused(page), 'S3 settings of gallery', 'the focus comes back');
	await link('Edit gallery').click();
	await page.getByText('Set: leave empty to keep.').waitFor();
	assert.equal(await field('S3 secret').inputValue(), '');
	assert.ok(!(await page.content()).includes(secret));
	await button('Remove S3 secret').click();
	await button('Save').click();
	await button('S3 settings of gallery').waitFor({ state: 'detached' });

	// Removed.
	await button('Remove gallery').click();
	await button('Remove account').click();
	await link('gallery').waitFor({ state: 'detached' });
	await announced(page, 'The account “gallery” is removed.');
	assert.equal(await focused(page), 'Accounts');
	assert.equal((await logIn('gallery', second)).status, 401);
	assert.equal(await upload(limited.token, 'docs'), 401);
	await accessible(page, 'accounts after a removal');
	assert.ok(!(await page.content()).includes(second));
});

async function mayLogIn(password) {
	const answer = await logIn('gallery', password);
	assert.equal(answer.status, 200, 'the shown password');
	return answer;
}

/** Uploads a file like a site; returns the status. */
async function upload(token, alias) {
	const body = new FormData();
	body.append('alias', alias);
	body.append('files[]', new Blob(['text']), 'note.txt');
	const answer = await fetch(new URL('/api/upload/file', facts.panel), {
		method: 'POST', body, headers: { 'Service-Api-Key': 'gallery', 'Service-Access-Token': token },
	});
	await answer.text();
	return answer.status;
}
