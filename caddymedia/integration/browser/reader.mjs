// A read-only user.
import { accessible, assert, open, run, shot } from './lib.mjs';

await run(async () => {
	const page = await open({ user: 'viewer' });
	await page.getByRole('complementary', { name: 'Read only' }).waitFor();
	for (const [route, title] of [
		['#/storages', 'Storages'], ['#/storages/archive', 'archive'], ['#/aliases', 'Aliases'], ['#/aliases/img/content', 'content'],
		['#/accounts', 'Accounts'], ['#/items/img/content', 'Items'], ['#/health', 'Health'],
	]) {
		await page.goto(new URL(route, page.url()).href);
		await page.getByRole('heading', { level: 1, name: title }).waitFor();
		const changing = page.getByRole('main').getByRole('button', { name: /^(Add|Remove|Save|Delete|Upload|Test|New password|End tokens)/ });
		assert.deepEqual(await changing.allInnerTexts(), [], `changing buttons on ${route}`);
		assert.equal(await page.getByRole('link', { name: /^Add / }).count(), 0, `adding on ${route}`);
		await accessible(page, `${route}, read-only`);
	}
	await shot(page, 'health');
});
