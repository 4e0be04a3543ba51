// The notice about unsaved changes, the download, the Caddyfile, a server that fails and recovers, the use of the
// storages and the last changes.
import { readFile } from 'node:fs/promises';
import { accessible, announced, assert, facts, focused, open, run, shot, visit } from './lib.mjs';

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
	await page.getByRole('list', { name: 'Service' }).getByText(/, Caddy .*, go1\./).waitFor();
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

	// A check by another program is tested.
	await page.getByRole('button', { name: 'Test http of checked' }).click();
	const tested = page.getByRole('dialog', { name: 'Test of http of checked' });
	await tested.getByText('The test failed', { exact: true }).waitFor();
	await tested.getByRole('list', { name: 'Steps' }).getByText(/refused the connection/).waitFor();
	await accessible(page, 'a test of a check');
	await shot(page, 'check');
	await tested.getByRole('button', { name: 'Close' }).click();
	await refresh.click();
	await page.getByRole('list', { name: 'Checks by other programs' }).getByText(/refused the connection/).waitFor();
	await shot(page, 'checks');

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
	await visit(page, '#/storages/archive');
	await page.getByLabel('Sub folder format', { exact: true }).fill('%Y/kept');
	await page.context().setOffline(true);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('alert').getByText(/Check whether the change was made/).waitFor();
	await page.context().setOffline(false);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Storages' }).waitFor();

	// A message for screen readers does not replace one that is shown.
	await page.evaluate(async () => {
		const { announce } = await import(new URL('lib/ui.js', document.querySelector('script[type=module]').src));
		announce('Seen and heard.');
		announce('Only heard.', { visible: false });
	});
	await announced(page, 'Only heard.');
	await announced(page, 'Seen and heard.');

	await usage(await open({ route: '#/health' }));
	await moved(await open({ route: '#/aliases/img/content' }));
	await looks();

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

/** The row of the alias content of a kind. */
function rowOf(list, page, kind) {
	return list.getByRole('row').filter({ has: page.getByRole('link', { name: 'content', exact: true }) }).filter({ hasText: kind });
}

/** Items are counted when the page is opened, and again on request. Changes appear, with links to items that exist. */
async function usage(page) {
	const list = page.getByRole('list', { name: 'Usage' });
	const files = rowOf(list, page, 'files');
	await files.getByRole('cell').first().filter({ hasText: /^0$/ }).waitFor();
	await rowOf(list, page, 'images').getByRole('cell').first().filter({ hasText: /^3$/ }).waitFor();
	await list.getByRole('meter', { name: 'Share of content (images)' }).waitFor();
	await list.getByText(/ of \d.* [KMGT]iB$/).first().waitFor(); // the free space
	await list.getByText('No alias uses it.').waitFor();

	const stored = await page.evaluate(async () => {
		const form = new FormData();
		form.append('files[]', new File(['text'], 'counted here.txt', { type: 'text/plain' }));
		form.append('sub_folder', 'a folder');
		const answer = await fetch('api/upload/file', { method: 'POST', body: form });
		return (await answer.json()).result[0].filename;
	});
	const again = page.getByRole('button', { name: 'Count again' });
	await again.focus();
	await page.keyboard.press('Enter');
	await announced(page, 'The count has started.');
	await files.getByRole('cell').first().filter({ hasText: /^1$/ }).waitFor();
	assert.equal(await focused(page), 'Count again', 'the focus stays while the page is refreshed');
	await page.getByRole('button', { name: 'Refresh' }).click();
	const first = page.getByRole('list', { name: 'Last changes' }).getByRole('listitem').first();
	await first.filter({ hasText: /^Stored/ }).getByText(/^admin in the panel, /).waitFor();
	await accessible(page, 'usage and changes');
	await shot(page, 'usage');
	const link = first.getByRole('link', { name: stored });
	await link.focus();
	await page.keyboard.press('Enter');
	await page.getByRole('dialog').getByText('Text', { exact: true }).first().waitFor();
	await page.goBack();

	await page.evaluate(async (name) => (await fetch(`api/items/file/content/${name}`, { method: 'DELETE' })).text(), stored);
	await page.getByRole('button', { name: 'Refresh' }).click();
	await first.filter({ hasText: /^Deleted/ }).getByText(stored).waitFor();
	assert.equal(await page.getByRole('link', { name: stored }).count(), 0, 'a deleted item has no link');

	// A viewer sees the same, without the button.
	const viewer = await open({ user: 'viewer', route: '#/health' });
	await viewer.getByRole('list', { name: 'Last changes' }).getByText(stored).first().waitFor();
	assert.equal(await viewer.getByRole('button', { name: 'Count again' }).count(), 0);
}

/** Another storage of an alias hides its items, so that the panel asks first. The change is among the last ones. */
async function moved(page) {
	const storage = page.getByLabel('Storage', { exact: true });
	const save = page.getByRole('button', { name: 'Save', exact: true });
	const dialog = page.getByRole('dialog', { name: 'Hide 3 items of “content”?' });
	await storage.selectOption('archive');
	await save.click();
	assert.equal(await dialog.getByLabel('Command', { exact: true }).inputValue(), 'caddy media copy default archive --alias img/content');
	await accessible(page, 'the question before items are hidden');
	await shot(page, 'hide', false);
	await dialog.getByRole('button', { name: 'Cancel' }).click();
	assert.equal(await storage.inputValue(), 'archive', 'the input stays');
	assert.equal((await page.evaluate(async () => (await fetch('api/config/image_aliases/content')).json())).value.storage, undefined, 'it is saved');
	await save.click();
	await dialog.getByRole('button', { name: 'Save and hide them' }).click();
	await page.getByRole('heading', { level: 1, name: 'Aliases' }).waitFor();

	await visit(page, '#/aliases/img/content'); // with nothing to hide it does not ask
	await page.getByLabel('Storage', { exact: true }).selectOption('default');
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Aliases' }).waitFor();
	await visit(page, '#/health');
	const first = page.getByRole('list', { name: 'Last changes' }).getByRole('listitem').first();
	await first.filter({ hasText: /^Changed image alias content/ }).getByText(/^admin in the panel, /).waitFor();
	await first.getByText('storage', { exact: true }).waitFor();
	await accessible(page, 'a change of the configuration');
	await shot(page, 'configuration');
}

/** A long list of changes, a running count and a failed one, in all looks. */
async function looks() {
	const none = { objects: 0, bytes: 0 };
	const alias = (name, objects, more) => ({
		kind: 'img', name, items: { objects, bytes: objects * 54_321 }, variants: none, renditions: none, trash: none, at_least: false,
		counted: new Date(Date.now() - 12 * 60_000).toISOString(), state: 'idle', so_far: 0, message: '', detail: '', ...more,
	});
	const usage = {
		counting: true,
		storages: [
			{
				name: 'default', driver_title: 'Local folder', driver_icon: 'disk', free: 4e10, total: 5e11,
				unfinished: { objects: 2, bytes: 123_456_789 },
				aliases: [
					alias('content', 1_234_567, { variants: { objects: 1_200_000, bytes: 4e10 }, renditions: { objects: 42, bytes: 123_456 }, trash: { objects: 1_234, bytes: 5e9 }, state: 'counting', so_far: 1_357_000 }),
					alias('a-rather-long-name-of-an-alias-that-nobody-would-type', 2_000_000, { at_least: true, state: 'waiting' }),
					alias('fresh', 0, { counted: null, state: 'waiting' }),
				],
			},
			{
				name: 'far', driver_title: 'SFTP', driver_icon: 'server', free: 1e9, total: 5e10, unfinished: none,
				aliases: [alias('broken', 12, { message: 'The host does not answer.', detail: 'dial tcp: i/o timeout' })],
			},
			{ name: 'bucket', driver_title: 'Amazon S3', driver_icon: 'cloud', free: null, total: null, unfinished: none, aliases: [] },
		],
	};
	const actions = ['store', 'replace', 'delete', 'move', 'copy', 'terminate'];
	const changes = Array.from({ length: 200 }, (_, i) => {
		const action = actions[i % actions.length];
		return {
			time: new Date(Date.now() - i * 61_000).toISOString(), action, kind: 'img', alias: 'content',
			filename: `26-11/21/a-long-name-of-an-image-that-somebody-has-sent-${i}.jpg`, size: action === 'terminate' ? null : 1234 * i,
			origin: ['http', 'panel', 'admin', 'go'][i % 4], account: i % 4 < 2 ? 'site-one' : '', user: i % 8 ? '' : 'jane@example.com', result: 'ok',
			...action === 'move' || action === 'copy' ? { to: `26-11/22/another-name-${i}.jpg`, to_alias: 'fresh' } : {},
			...i === 2 ? { filename: '', folder: 'old/folder', number: 1000, size: null, result: 'the storage did not delete some items' } : {},
		};
	});
	for (const [width, height] of [[1280, 900], [390, 844]]) {
		for (const dark of [false, true]) {
			const page = await open({ width, height, dark });
			await page.route('**/api/usage', (route) => route.fulfill({ json: usage }));
			await page.route('**/api/changes', (route) => route.fulfill({ json: { since: new Date(Date.now() - 864e5).toISOString(), changes } }));
			await visit(page, '#/health');
			await page.getByText('Counting content (images): 1,357,000 objects so far. 2 aliases to go.').waitFor();
			await page.getByText('at least 3,234,567').first().waitFor();
			await page.getByText('180 earlier changes').click();
			assert.equal(await page.getByRole('list', { name: 'Earlier changes' }).getByRole('listitem').count(), 180);
			const what = `${width}-${dark ? 'dark' : 'light'}`;
			await accessible(page, `a running count, ${what}`);
			await page.getByText('180 earlier changes').click();
			await shot(page, `counting-${what}`);
			await page.getByRole('meter', { name: 'Space in use at default' }).evaluate((meter) => meter.scrollIntoView()); // it is drawn anew each second
			await shot(page, `space-${what}`, false);
			await page.getByText('The host does not answer.').waitFor();
			await page.context().close();
		}
	}
}
