// The renditions of an image alias are added, changed, renamed and removed in its form.
import { accessible, announced, assert, facts, focused, open, run, shot, visit } from './lib.mjs';

await run(async () => {
	const page = await open({ route: '#/aliases/img/content' });
	const form = page.getByRole('form', { name: 'image alias' });
	const renditions = form.getByRole('group', { name: 'Renditions' });
	const add = renditions.getByRole('button', { name: 'Add rendition' });
	const save = form.getByRole('button', { name: 'Save' });
	const edit = async () => {
		await page.getByRole('link', { name: 'Edit content', exact: true }).first().click();
		await form.waitFor();
	};
	const configured = () =>
		page.evaluate(async (address) => (await (await fetch(address)).json()).value.renditions,
			`${facts.panel}api/config/image_aliases/content`);

	// A new one needs a name of its own.
	await add.press('Enter');
	const name = renditions.getByLabel('Name', { exact: true });
	assert.equal(await name.evaluate((input) => input === document.activeElement), true, 'the name has the focus');
	await save.click();
	await form.getByRole('alert').getByRole('link', { name: 'Name is required.' }).waitFor();
	await name.fill('Thumb');
	await save.click();
	await form.getByRole('alert').getByText(/^A name is 1 to 64/).waitFor();
	await name.fill('thumb');
	await add.click();
	await name.nth(1).fill('thumb');
	await save.click();
	await form.getByRole('alert').getByRole('link', { name: 'There is another rendition called “thumb”.' }).first().waitFor();
	await accessible(page, 'two renditions of one name');
	await name.nth(1).fill('hero');
	await renditions.getByLabel('Width', { exact: true }).nth(1).fill('1600');

	// A problem that the server finds is shown at its field.
	const width = renditions.getByLabel('Width', { exact: true }).first();
	await width.fill('16384');
	await renditions.getByText('thumb', { exact: false }).first().press('Enter'); // closes it
	await save.click();
	await form.getByRole('alert').getByText(/width and height are from 1 to 16383/).waitFor();
	assert.equal(await width.evaluate((input) => input === document.activeElement), true, 'the width has the focus');
	assert.equal(await width.getAttribute('aria-invalid'), 'true');
	await width.fill('320');
	await renditions.getByLabel('Height', { exact: true }).first().fill('240');
	await renditions.getByLabel('Fit', { exact: true }).first().selectOption('cover');
	await renditions.getByText('Width 320 · Height 240 · Fit cover').waitFor();
	await accessible(page, 'two renditions');
	await shot(page, 'two');
	await save.click();
	await announced(page, 'The image alias “content” is saved.');
	assert.deepEqual(await configured(), { thumb: { width: 320, height: 240, fit: 'cover' }, hero: { width: 1600 } });

	// One is renamed, the other removed.
	await edit();
	await renditions.getByText('hero', { exact: false }).first().click();
	await renditions.getByRole('button', { name: 'Remove hero' }).click();
	assert.equal(await focused(page), 'Add rendition', 'the focus is not lost');
	await renditions.getByText('thumb', { exact: false }).first().click();
	await name.fill('small');
	await save.click();
	await form.waitFor({ state: 'detached' }); // the announcement of the first change may still be there
	assert.deepEqual(await configured(), { small: { width: 320, height: 240, fit: 'cover' } });

	// The details of an image have its address.
	await visit(page, '#/items/img/content');
	const thumbnail = page.getByRole('img', { name: 'Preview of tree.jpg' });
	await thumbnail.waitFor();
	await page.waitForFunction((img) => img.complete, await thumbnail.elementHandle());
	assert.equal(await thumbnail.evaluate((img) => img.naturalWidth), 320);
	await page.getByRole('main').getByRole('link', { name: /tree\.jpg/ }).click();
	const item = page.getByRole('dialog', { name: 'tree.jpg' });
	await item.getByText('Other sizes: small', { exact: true }).click();
	const small = item.getByLabel('small, 320 × 240', { exact: true });
	const address = await small.inputValue();
	assert.match(address, /\/static\/img\/content@small\/tree\.jpg$/);
	assert.equal(await item.getByRole('link', { name: 'Open small' }).getAttribute('href'), address);
	await item.getByRole('button', { name: 'Copy: small, 320 × 240' }).click();
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()), address);
	const html = await item.getByLabel('HTML image', { exact: true }).inputValue();
	const [, first] = /srcset="(\S+) 320w,\s+\S+\/content\/tree\.jpg \d+w"\s+sizes="100vw" alt="">$/.exec(html) ?? [];
	assert.equal(first, address, html);
	await accessible(page, 'an image with a rendition');
	await shot(page, 'item', false);
	await page.keyboard.press('Escape');
	await page.waitForFunction(() => location.hash === '#/items/img/content');
	await visit(page, '#/aliases');

	// A change by another administrator is not lost.
	await edit();
	await page.evaluate(async (address) => {
		const now = await fetch(address);
		await now.text();
		const answer = await fetch(address, {
			method: 'PUT',
			headers: { 'Content-Type': 'application/json', 'If-Match': now.headers.get('ETag') },
			body: JSON.stringify({ value: { renditions: { small: { width: 99 } } }, secrets: {} }),
		});
		await answer.text();
	}, `${facts.panel}api/config/image_aliases/content`);
	await renditions.getByText('small', { exact: false }).first().click();
	await renditions.getByRole('button', { name: 'Remove small' }).click();
	await save.click();
	const conflict = page.getByRole('dialog');
	await conflict.getByRole('row', { name: 'Renditions: Small: Width 99 not set' }).waitFor();
	await accessible(page, 'a conflict about renditions');
	await conflict.getByRole('button', { name: 'Overwrite with mine' }).click();
	await announced(page, 'The image alias “content” is saved.');
	assert.equal(await configured(), undefined);
});
