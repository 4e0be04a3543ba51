// Every page, wide and narrow, light and dark, by mouse and by keyboard.
import { accessible, assert, facts, focused, open, run, shot } from './lib.mjs';

const kinds = ['Local folder', 'S3', 'Azure Blob Storage', 'Google Cloud Storage', 'SFTP', 'FTP'];

const routes = [
	['storages', '#/storages', 'Storages'],
	['storage', '#/storages/archive', 'archive'],
	['storage-down', '#/storages/dead', 'dead'],
	['aliases', '#/aliases', 'Aliases'],
	['alias-image', '#/aliases/img/content', 'content'],
	['alias-file', '#/aliases/file/content', 'content'],
	['alias-add', '#/aliases/img?add=1', 'Add image alias'],
	['accounts', '#/accounts', 'Accounts'],
	['account', '#/accounts/site-one', 'site-one'],
	['account-add', '#/accounts?add=1', 'Add account'],
	['items', '#/items/img/content', 'Items'],
	['items-folder', '#/items/img/content/album', 'Items'],
	['items-search', '#/items/img/content?search=a', 'Items'],
	['items-down', '#/items/file/far', 'Items'],
	['uploads', '#/uploads', 'Uploads'],
	['health', '#/health', 'Health'],
	['missing', '#/aliases/img/missing', 'Aliases'],
];

await run(async () => {
	for (const width of [1280, 390]) {
		for (const dark of [false, true]) {
			const looks = `${width}-${dark ? 'dark' : 'light'}`;
			const page = await open({ width, height: width === 390 ? 844 : 900, dark });
			for (const [name, route, title] of routes) {
				await visit(page, route, title);
				await accessible(page, `${name} ${looks}`);
				await shot(page, `${name}-${looks}`);
			}
			await page.goto(`${facts.panel}#/storages?add=1`);
			for (const kind of kinds) {
				await page.getByRole('radio', { name: kind, exact: true }).check();
				const closed = await page.getByRole('main').locator('details:not([open]) > summary').all();
				for (const more of closed.reverse()) { // one that is open is none of them any more
					await more.click();
				}
				await accessible(page, `a new storage, ${kind}, ${looks}`);
				await shot(page, `new-${kind.replaceAll(' ', '-')}-${looks}`);
			}
			await page.context().close();
		}
	}
	await magnified();
	await byKeyboard();
});

/** The size of a screen at 400 %. */
async function magnified() {
	const page = await open({ width: 320, height: 256 });
	for (const [name, route, title] of routes) {
		await visit(page, route, title);
		await accessible(page, `${name} at 400 %`);
		const covered = await page.evaluate(() => document.elementFromPoint(160, 250).closest('header') !== null);
		assert.equal(covered, false, `${name} has room at 400 %`);
	}
	await page.context().close();
}

/** Goes to a page, and waits for its own heading, which may be equal to that of the page before, and for its requests. */
async function visit(page, route, title) {
	await page.locator('h1').evaluate((heading) => heading.classList.add('before'));
	await page.goto(facts.panel + route);
	await page.locator('h1:not(.before)').getByText(title, { exact: true }).waitFor();
	await page.waitForLoadState('networkidle');
	await page.waitForFunction(() => [...document.images].every((img) => img.loading === 'lazy' || img.complete));
}

/** Opens and closes an item by keyboard. */
async function byKeyboard() {
	const page = await open();
	const tabTo = async (text) => {
		for (let i = 0; i < 60; i++) {
			await page.keyboard.press('Tab');
			if ((await focused(page))?.startsWith(text)) return;
		}
		assert.fail(`Tab never reaches ${text}`);
	};
	await page.keyboard.press('Tab');
	assert.equal(await focused(page), 'Skip to the content');
	await tabTo('Items');
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { level: 1, name: 'Items' }).waitFor();
	assert.equal(await focused(page), 'Items', 'the focus moves to the new page');
	assert.match(await page.title(), /Items/);
	await tabTo('album');
	await page.keyboard.press('Enter');
	await page.locator('main').getByRole('link', { name: /^Preview of a-rather-long/ }).waitFor();
	await tabTo('a-rather-long'); // the items are one stop of Tab
	await page.keyboard.press('ArrowRight');
	assert.match(await focused(page), /^tree\.jpg/);
	await page.keyboard.press('Enter');
	const item = page.getByRole('dialog', { name: 'tree.jpg' });
	await item.getByRole('button', { name: 'Delete' }).waitFor();
	await page.keyboard.press('Escape');
	await item.waitFor({ state: 'detached' });
	assert.match(await focused(page), /tree\.jpg/, 'the focus comes back');
}
