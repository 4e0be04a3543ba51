// Names with HTML in them are shown as text everywhere.
import { assert, facts, open, run, shot } from './lib.mjs';

const { name, folder, root } = facts.more;

await run(async () => {
	const page = await open({ route: '#/items/file/content' });
	const link = (name) => page.getByRole('link', { name, exact: true });
	await link(folder).click();
	await link(name).first().waitFor();
	await shot(page, 'items');
	await page.getByRole('button', { name: 'List', exact: true }).click();
	await link(name).click();
	const item = page.getByRole('dialog', { name });
	assert.equal(await item.getByLabel('Stored filename', { exact: true }).inputValue(), `${folder}/${name}`);
	const address = await item.getByLabel('Address', { exact: true }).inputValue();
	assert.equal((await fetch(address)).status, 200);
	await shot(page, 'item', false);
	await item.getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('dialog', { name: `Delete “${name}”?` }).getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	assert.equal((await fetch(address)).status, 404);

	// A search for it, a storage in such a folder, a refused upload.
	await page.getByLabel(/^Search by name/).fill(name);
	await page.keyboard.press('Enter');
	await page.getByText(`No name here contains “${name}”.`).waitFor();
	await link('Storages').click();
	await page.getByText(root).waitFor();
	await page.goto(`${facts.panel}#/items/file/content`);
	await link(folder).waitFor();
	await page.getByLabel('Files to upload').setInputFiles({ name: `${name}.php`, mimeType: 'text/plain', buffer: Buffer.from('x') });
	await page.getByText(/\.php is not accepted/).waitFor();
	assert.equal(await page.locator('main script, main img:not([src^="api/"]), main iframe').count(), 0);
});
