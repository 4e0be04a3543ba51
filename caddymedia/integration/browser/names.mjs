// Items with unusual names: each is found, opened, copied and renamed, and none is wider than its page. HTML in
// a name is shown as text everywhere.
import { accessible, assert, closed, controls, facts, item, open, run, shot, text, visit } from './lib.mjs';

const { names, folder, root } = facts.more;

await run(async () => {
	const page = await open({ route: '#/items/file/exact' });
	const main = page.getByRole('main');
	for (const name of names) {
		await main.locator(`[data-item=${JSON.stringify(name)}] a`).first().click();
		const dialog = item(page, name);
		await dialog.locator('pre').filter({ hasText: 'text' }).waitFor();
		const text = (label) => dialog.getByLabel(label, { exact: true }).inputValue();
		assert.equal(await text('Folder and name'), name);
		const address = await text('Address');
		for (const title of ['HTML link', 'Markdown']) {
			await dialog.getByLabel('Copy as').selectOption(title);
			const copied = await text(title);
			const [, target, label] = title === 'Markdown' ? /\]\((\S+)\)$/.exec(copied)
				: /^<a href="([^"<>]+)">([^<>]+)<\/a>$/.exec(copied).map((part) => part.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)));
			if (label) assert.equal(label, name);
			for (const wanted of [address, target]) {
				const answer = await fetch(wanted);
				assert.equal(`${answer.status} ${await answer.text()}`, '200 text', `${title} of ${name}: ${wanted}`);
			}
		}
		await page.reload();
		await item(page, name).locator('pre').filter({ hasText: 'text' }).waitFor();
		await page.keyboard.press('Escape');
		await closed(page);
	}
	await rename(page);
	await hostile(page);
	for (const [width, dark] of [[320, false], [390, true], [1280, true]]) await narrow(width, dark);
});

/** A name keeps its spaces when only the folder changes, and is not changed by opening the form. */
async function rename(page) {
	const name = names.find((each) => each.startsWith(' '));
	await page.getByRole('main').locator(`[data-item=${JSON.stringify(name)}] a`).first().click();
	const dialog = item(page, name);
	const filename = dialog.getByLabel('Folder and name', { exact: true });
	const form = page.getByRole('dialog', { name: /^Rename/ });
	await dialog.getByRole('button', { name: 'Rename' }).click();
	await form.getByRole('button', { name: 'Rename' }).click();
	await form.waitFor({ state: 'detached' });
	assert.equal(await filename.inputValue(), name);
	await dialog.getByRole('button', { name: 'Rename' }).click();
	await form.getByLabel('Name', { exact: true }).fill('  ');
	await page.keyboard.press('Enter');
	await form.getByRole('alert').getByText('Enter a name.').waitFor();
	await form.getByLabel('Name', { exact: true }).fill('50% #1? b%2Fc.txt');
	await page.keyboard.press('Enter');
	const next = item(page, '50% #1? b%2Fc.txt');
	await next.getByRole('status').getByText('Renamed to').waitFor();
	await page.keyboard.press('Escape');
	await page.waitForFunction(() => !document.querySelector('dialog'));
}

/** Long names and those from right to left, on small and large windows. */
async function narrow(width, dark) {
	const page = await open({ route: '#/items/file/exact', user: facts.user, width, height: 844, dark });
	for (const [i, name] of names.filter((each) => each.length > 100 || /[\u0590-\u06ff]/.test(each)).entries()) {
		await page.goto(`${facts.panel}#/items/file/exact?item=${encodeURIComponent(name)}`);
		const dialog = item(page, name);
		await dialog.locator('pre').filter({ hasText: 'text' }).waitFor();
		const fits = () => page.evaluate(() => [...document.querySelectorAll('dialog')].every((each) => each.scrollWidth <= each.clientWidth));
		await accessible(page, `${name} at ${width}`);
		assert.ok(await fits(), `${name} fits ${width} pixels`);
		await shot(page, `${width}-${i}`, false);
		for (const action of ['Rename', 'Delete']) {
			await dialog.getByRole('button', { name: action }).click();
			await accessible(page, `${action} at ${width}`);
			assert.ok(await fits(), `${action} of ${name} fits ${width} pixels`);
			await shot(page, `${width}-${i}-${action}`, false);
			await page.keyboard.press('Escape');
		}
		await page.keyboard.press('Escape');
		await closed(page);
	}
	await visit(page, '#/health');
	await page.getByRole('heading', { name: 'Last changes' }).waitFor();
	await accessible(page, `the health page at ${width}`);
	await shot(page, `${width}-health`);
}

/** Names with HTML in them: of a folder, of a search, of the folder of a storage, and of a refused upload. */
async function hostile(page) {
	const { link } = controls(page);
	const name = names.find((each) => each.includes('<img'));
	await page.goto(`${facts.panel}#/items/file/exact`); // it may be shown already
	await link(folder).click();
	await page.getByRole('button', { name: 'List', exact: true }).click();
	await link(name).click();
	await item(page, name).getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('dialog', { name: `Delete “${name}”?` }).getByRole('button', { name: 'Delete' }).click();
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	await page.getByLabel(/^Search by name/).fill(name);
	await page.keyboard.press('Enter');
	await page.getByText(`No name here contains “${name}”.`).waitFor();
	await link('Storages').click();
	await page.getByText(root).waitFor();
	await visit(page, '#/items/file/exact');
	await page.getByLabel('Files to upload').setInputFiles(text(`${name}.php`));
	await page.getByText(/\.php is not accepted/).first().waitFor();
	assert.equal(await page.locator('main script, main img:not([src^="api/"]), main iframe').count(), 0);
}
