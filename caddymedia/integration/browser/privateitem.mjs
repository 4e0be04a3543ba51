// An alias is made private in its form, and its item is opened and copied by a signed address.
import { accessible, announced, assert, facts, open, run, shot, visit } from './lib.mjs';

/** As in an attribute. */
const escaped = (address) => address.replaceAll('&', '&#38;');

await run(async () => {
	const page = await open({ route: '#/aliases/img/content' });
	const form = page.getByRole('form', { name: 'image alias' });
	const options = form.getByRole('group', { name: 'Private options' });
	await form.getByText('More options', { exact: true }).click();
	await form.getByLabel('Private', { exact: true }).check();
	await options.getByLabel('Step', { exact: true }).fill('8d');
	await form.getByRole('button', { name: 'Save' }).click();
	await form.getByRole('alert').getByText(/step is whole seconds, 7d at most/).waitFor();
	await options.getByLabel('Step', { exact: true }).fill('1h');
	await options.getByLabel('Generation', { exact: true }).fill('2');
	await accessible(page, 'the form of a private alias');
	await shot(page, 'form');
	await form.getByRole('button', { name: 'Save' }).click();
	await announced(page, 'The image alias “content” is saved.');

	await page.getByRole('listitem').filter({ hasText: 'content' }).getByText('private', { exact: true }).first().waitFor();
	await visit(page, '#/items/img/content');
	await page.getByRole('list', { name: 'Items' }).getByRole('listitem').filter({ hasText: 'tree.jpg' }).getByText('Private').waitFor();
	await page.getByRole('main').getByRole('link', { name: /tree\.jpg/ }).click();
	const item = page.getByRole('dialog', { name: 'tree.jpg' });
	const preview = item.getByRole('img', { name: 'tree.jpg' });
	await preview.evaluate((img) => img.decode());
	const status = (address) => page.evaluate(async (address) => {
		const answer = await fetch(address);
		await answer.arrayBuffer();
		return answer.status;
	}, address);
	const plain = await item.getByLabel('Address without signature', { exact: true }).inputValue();
	assert.match(plain, /\/static\/img\/content\/tree\.jpg$/);
	assert.equal(await status(plain), 403);
	const signed = await item.getByLabel(/^Signed address, until .*\d:\d\d/).inputValue();
	assert.ok(signed.startsWith(`${plain}?expires=`), signed);
	assert.equal(await status(signed), 200);
	assert.equal(await item.getByRole('link', { name: 'Open', exact: true }).getAttribute('href'), signed);
	await item.getByText('Other sizes: small', { exact: true }).click();
	const small = await item.getByLabel(/^small/).inputValue();
	assert.equal(await status(small), 200);
	await item.getByText(/^A text with a signed address shows the item until .*\d:\d\d/).waitFor();
	const format = item.getByLabel('Copy as', { exact: true });
	assert.equal(await item.getByLabel('HTML image', { exact: true }).inputValue().then((html) => html.includes(escaped(signed))), true);
	await format.selectOption('Markdown');
	assert.equal(await item.getByLabel('Markdown', { exact: true }).inputValue(), `![](${signed})`);
	await format.selectOption('Template function');
	assert.equal(await item.getByLabel('Template function', { exact: true }).inputValue(), '{{image_url "content" "tree.jpg" "1h"}}');
	await accessible(page, 'a private item');
	await shot(page, 'item', false);
});
