// A user logs in and out, and returns to pages whose session has ended.
import { accessible, assert, drop, facts, fillLogin, open, run, shot } from './lib.mjs';

const { basic } = facts.more ?? {};

// Answers of a login in front of the panel after its session has ended.
const refusals = {
	'basic_auth': { status: 401, headers: { 'WWW-Authenticate': 'Basic realm="x"' } },
	'a page of a single sign-on': { status: 200, contentType: 'text/html; charset=utf-8', body: '<h1>Log in</h1>' },
	'a redirect to a single sign-on': { status: 302, headers: { Location: 'login-elsewhere' } },
};

await run(async () => {
	if (basic) {
		for (const refusal of Object.values(refusals)) await visit((page) => page.route('**/api/**', (route) => route.fulfill(refusal)));
	} else {
		await loginPage();
		await visit((page) => page.context().clearCookies());
	}
});

async function visit(endSession) {
	const page = await open();

	// A loading page, a refresh, a form, an upload: all report it, with a link to the login.
	const again = page.getByRole('link', { name: 'Log in again' });
	const out = page.getByText('You are logged out.').first();
	await page.getByRole('link', { name: 'Health', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await endSession(page);
	await page.getByRole('button', { name: 'Refresh' }).click();
	await out.waitFor();
	assert.equal(await again.count(), 1);
	await page.getByRole('link', { name: 'Aliases', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Aliases' }).waitFor();
	await out.waitFor();
	assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0);
	await shot(page, 'ended');
	await accessible(page, 'a page without a session');
	if (basic) {
		await page.context().close();
		return;
	}

	await again.click(); // no unsaved input: in this tab
	await fillLogin(page, facts.user, facts.password);
	await page.getByRole('heading', { level: 1, name: 'Aliases' }).waitFor();

	await page.getByRole('link', { name: 'Add file alias' }).click();
	await page.getByLabel('Name', { exact: true }).fill('typed');
	await endSession(page);
	await page.getByRole('button', { name: 'Add file alias' }).click();
	await out.waitFor();
	await shot(page, 'ended-form');
	const [tab] = await Promise.all([page.context().waitForEvent('page'), again.click()]);
	await fillLogin(tab, facts.user, facts.password);
	await tab.close();
	await page.getByRole('button', { name: 'Add file alias' }).click(); // the input is still there
	await page.getByRole('link', { name: 'typed', exact: true }).waitFor();

	await page.getByRole('link', { name: 'Items', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Items' }).waitFor();
	await endSession(page);
	const svg = { name: 'a.svg', type: 'image/svg+xml', content: btoa('<svg xmlns="http://www.w3.org/2000/svg"/>') };
	await drop(page, page.locator('.upload'), [svg]);
	await page.locator('.upload-error', { hasText: 'You are logged out.' }).waitFor();
	await shot(page, 'ended-upload');

	// The file is still there after another login, and is sent again.
	const [login] = await Promise.all([page.context().waitForEvent('page'), again.first().click()]);
	await fillLogin(login, facts.user, facts.password);
	await login.close();
	await page.getByRole('button', { name: 'Again a.svg' }).click();
	await page.getByRole('list', { name: 'Uploads' }).getByText('Stored as').waitFor();
	await page.getByRole('button', { name: 'Log out' }).click();
	await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
	await page.goto(facts.panel);
	await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor();
}

async function loginPage() {
	for (const [look, options] of Object.entries({ light: {}, dark: { dark: true }, phone: { width: 390, height: 844 } })) {
		const page = await open({ ...options, user: '', route: '#/health' });
		await shot(page, look);
		await accessible(page, `the login page, ${look}`);
		assert.equal(await page.evaluate(() => document.activeElement.id), 'user');
		await page.getByLabel('User').fill(facts.user);
		await page.getByLabel('Password').fill('wrong');
		await page.keyboard.press('Enter');
		await page.getByRole('alert').filter({ hasText: 'Wrong user or password.' }).waitFor();
		assert.equal(await page.evaluate(() => document.activeElement.id), 'password');
		await shot(page, `${look}-wrong`);
		await accessible(page, `a failed login, ${look}`);
		await fillLogin(page, facts.user, facts.password);
		await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor(); // the requested page
		await shot(page, `${look}-health`);
		await accessible(page, `the panel, ${look}`);
		await page.context().close();
	}
	const page = await open({ user: '', script: false });
	await page.getByLabel('User').fill(facts.user);
	await page.getByLabel('Password').fill(facts.password);
	await page.getByRole('button', { name: 'Log in' }).click();
	await page.getByRole('button', { name: 'Log in' }).waitFor({ state: 'detached' });
	await page.context().close();
}
