// Two administrators edit one storage, and one makes an invalid edit.
import { accessible, assert, open, run, shot } from './lib.mjs';

await run(async () => {
	const [alice, bob] = await Promise.all([open({ route: '#/storages/archive' }), open({ route: '#/storages/archive' })]);
	const field = (page, name) => page.getByLabel(name, { exact: true });
	const save = (page) => page.getByRole('button', { name: 'Save', exact: true }).click();
	const conflict = bob.getByRole('dialog', { name: /Someone else has changed this storage/ });
	const choose = (name) => conflict.getByRole('button', { name }).click();
	const saved = (page) => page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();
	const change = async (page, format) => {
		await page.goto(new URL('#/storages/archive', page.url()).href);
		await field(page, 'Sub folder format').fill(format);
		await save(page);
		await saved(page);
	};

	// The second is informed, and loses no input.
	await field(bob, 'Sub folder format').fill('%Y/bob');
	await field(bob, 'Sanitize').uncheck();
	await change(alice, '%Y/alice');
	await save(bob);
	await conflict.getByRole('cell', { name: '%Y/alice' }).waitFor();
	await conflict.getByRole('cell', { name: '%Y/bob' }).waitFor();
	await shot(bob, 'conflict', false);
	await accessible(bob, 'a conflict');
	await choose('Continue editing');
	assert.equal(await field(bob, 'Sub folder format').inputValue(), '%Y/bob');
	assert.equal(await field(bob, 'Sanitize').isChecked(), false);

	// The saved values are used, and can be edited.
	await save(bob);
	await choose('Use theirs');
	await bob.waitForFunction((id) => document.getElementById(id)?.value !== '%Y/bob', await field(bob, 'Sub folder format').getAttribute('id'));
	assert.equal(await field(bob, 'Sub folder format').inputValue(), '%Y/alice');
	assert.equal(await field(bob, 'Sanitize').isChecked(), true);

	// Or they are overwritten.
	await field(bob, 'Sub folder format').fill('%Y/bob');
	await change(alice, '%Y/alice-again');
	await save(bob);
	await choose('Overwrite with mine');
	await saved(bob);
	await alice.goto(new URL('#/storages/archive', alice.url()).href);
	assert.equal(await field(alice, 'Sub folder format').inputValue(), '%Y/bob');

	// An invalid edit is refused with the reason, and stays in the form.
	await field(alice, 'Sub folder format').fill('../out');
	await save(alice);
	const reason = alice.getByRole('alert');
	await reason.getByText(/“Sub folder format”/).waitFor();
	await shot(alice, 'refused');
	await accessible(alice, 'a refused edit');
	assert.equal(await field(alice, 'Sub folder format').inputValue(), '../out');

	// Leaving the page asks before input is lost.
	await alice.getByRole('link', { name: 'Health', exact: true }).click();
	await alice.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Cancel' }).click();
	assert.equal(await field(alice, 'Sub folder format').inputValue(), '../out');
	await alice.getByRole('link', { name: 'Health', exact: true }).click();
	await alice.getByRole('button', { name: 'Leave', exact: true }).click();
	await alice.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await bob.goto(new URL('#/storages/archive', bob.url()).href);
	assert.equal(await field(bob, 'Sub folder format').inputValue(), '%Y/bob');

	// Removing an entry asks no question about its unsaved input.
	await field(bob, 'Sub folder format').fill('%Y/gone');
	await bob.getByRole('button', { name: 'Remove archive' }).click();
	await bob.getByRole('button', { name: 'Remove storage' }).click();
	await saved(bob);
});
