// Two administrators edit one storage, and one of them something that cannot be.
import { accessible, assert, open, person, shot } from './lib.mjs';

await person(async () => {
	const [alice, bob] = await Promise.all([open({ route: '#/storages/archive' }), open({ route: '#/storages/archive' })]);
	const field = (page, name) => page.getByLabel(name, { exact: true });
	const save = (page) => page.getByRole('button', { name: 'Save', exact: true }).click();
	const conflict = bob.getByRole('dialog', { name: /Somebody else has changed this storage/ });
	const choose = (name) => conflict.getByRole('button', { name }).click();
	const saved = (page) => page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();
	const change = async (page, format) => {
		await page.goto(new URL('#/storages/archive', page.url()).href);
		await field(page, 'Sub folder format').fill(format);
		await save(page);
		await saved(page);
	};

	// The second is told, and loses nothing that was typed.
	await field(bob, 'Sub folder format').fill('%Y/bob');
	await field(bob, 'Sanitize').uncheck();
	await change(alice, '%Y/alice');
	await save(bob);
	await conflict.getByRole('cell', { name: '%Y/alice' }).waitFor();
	await conflict.getByRole('cell', { name: '%Y/bob' }).waitFor();
	await shot(bob, 'conflict', false);
	await accessible(bob, 'a conflict');
	await choose('Go on editing');
	assert.equal(await field(bob, 'Sub folder format').inputValue(), '%Y/bob');
	assert.equal(await field(bob, 'Sanitize').isChecked(), false);

	// Theirs is taken, and can be changed from there.
	await save(bob);
	await choose('Take theirs');
	await bob.waitForFunction((id) => document.getElementById(id)?.value !== '%Y/bob', await field(bob, 'Sub folder format').getAttribute('id'));
	assert.equal(await field(bob, 'Sub folder format').inputValue(), '%Y/alice');
	assert.equal(await field(bob, 'Sanitize').isChecked(), true);

	// Or one's own is saved over it.
	await field(bob, 'Sub folder format').fill('%Y/bob');
	await change(alice, '%Y/alice-again');
	await save(bob);
	await choose('Save mine over it');
	await saved(bob);
	await alice.goto(new URL('#/storages/archive', alice.url()).href);
	assert.equal(await field(alice, 'Sub folder format').inputValue(), '%Y/bob');

	// What cannot be is refused with the reason, and stays in the form.
	await field(alice, 'Sub folder format').fill('../out');
	await save(alice);
	const reason = alice.getByRole('alert');
	await reason.getByText(/sub_folder_format/).waitFor();
	await shot(alice, 'refused');
	await accessible(alice, 'a refused edit');
	assert.equal(await field(alice, 'Sub folder format').inputValue(), '../out');

	// What was typed is not lost by going elsewhere without being asked.
	await alice.getByRole('link', { name: 'Health', exact: true }).click();
	await alice.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Cancel' }).click();
	assert.equal(await field(alice, 'Sub folder format').inputValue(), '../out');
	await alice.getByRole('link', { name: 'Health', exact: true }).click();
	await alice.getByRole('button', { name: 'Leave', exact: true }).click();
	await alice.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await bob.goto(new URL('#/storages/archive', bob.url()).href);
	assert.equal(await field(bob, 'Sub folder format').inputValue(), '%Y/bob');

	// What was typed into something that is removed is worth no question.
	await field(bob, 'Sub folder format').fill('%Y/gone');
	await bob.getByRole('button', { name: 'Remove archive' }).click();
	await bob.getByRole('button', { name: 'Remove storage' }).click();
	await saved(bob);
});
