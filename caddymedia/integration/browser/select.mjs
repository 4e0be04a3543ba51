// Selecting items by mouse, keyboard and touch.
import { accessible, assert, facts, focused, open, run, shot, wheelUntil } from './lib.mjs';

const route = '#/items/img/content/all';
const box = (page, n) => page.getByRole('checkbox', { name: `Select image-${String(n).padStart(4, '0')}.jpg`, exact: true });
const tile = (page, n) => page.getByRole('main').getByRole('link', { name: new RegExp(`image-${String(n).padStart(4, '0')}.jpg`) });
const bar = (page) => page.getByRole('region', { name: 'Selection' });
const selected = (page, n) => bar(page).getByText(new RegExp(`^${n.toLocaleString('en')} items?( selected)?, `)).waitFor();
const nothing = (page) => bar(page).waitFor({ state: 'hidden' });

await run(async () => {
	const page = await open({ route });
	await byMouse(page);
	await byKeyboard(page);
	await asList(page);
	await all(page);
	await inDark();
	await asViewer();
	await byTouch();
});

async function byMouse(page) {
	await tile(page, 0).hover();
	await shot(page, 'hover', false);
	await box(page, 0).click();
	await selected(page, 1);
	await page.getByRole('status').filter({ hasText: '1 item selected' }).waitFor();
	await box(page, 3).click({ modifiers: ['Shift'] });
	await selected(page, 4);
	await tile(page, 8).click({ modifiers: ['Shift'] });
	await selected(page, 9);
	await tile(page, 2).click({ modifiers: ['ControlOrMeta'] });
	await selected(page, 8);
	assert.equal(await box(page, 2).isChecked(), false);
	assert.equal(await page.getByRole('dialog').count(), 0, 'a click with a key opens nothing');
	await accessible(page, 'a selection');
	await shot(page, 'selected', false);

	// It survives further pages and another look.
	await wheelUntil(page, () => tile(page, 200).count());
	assert.equal(await box(page, 0).count(), 0, 'what is far away is not in the page');
	await wheelUntil(page, () => tile(page, 8).count(), -600);
	assert.ok(await box(page, 8).isChecked());
	await page.getByRole('button', { name: 'List', exact: true }).click();
	await page.getByRole('table', { name: 'Items' }).waitFor();
	assert.ok(await box(page, 8).isChecked());
	await selected(page, 8);
	await page.getByRole('button', { name: 'Images', exact: true }).click();
	assert.ok(await box(page, 8).isChecked());

	// Another folder or search clears it.
	await page.getByRole('link', { name: 'album' }).click();
	await page.getByText('3 items.').waitFor();
	await nothing(page);
	await page.goBack();
	await tile(page, 0).waitFor();
	await nothing(page);
	await box(page, 1).check();
	await bar(page).getByRole('button', { name: 'Clear' }).click();
	await nothing(page);
	assert.match(await focused(page), /image-0001\.jpg/, 'the focus goes back to the list');
}

async function byKeyboard(page) {
	const press = async (...keys) => {
		for (const key of keys) await page.keyboard.press(key);
	};
	await page.evaluate(() => history.replaceState(null, '')); // it has the focused item
	await page.reload();
	await tile(page, 0).waitFor();
	// One stop for the folders, one for the items, each with its controls.
	await page.getByRole('link', { name: 'album' }).focus();
	await press('ArrowRight');
	assert.equal(await focused(page), 'holidays');
	await press('Tab');
	assert.equal(await focused(page), 'Delete folder holidays');
	await press('Tab');
	assert.match(await focused(page), /image-0000/);
	await press('Tab');
	assert.equal(await focused(page), 'Select image-0000.jpg');
	await press('Space');
	await selected(page, 1);
	await press('Space', 'Shift+Tab', 'ArrowRight', 'ArrowRight');
	await nothing(page);
	assert.match(await focused(page), /image-0002/);
	await press('Space');
	await selected(page, 1);
	await press('Shift+ArrowRight', 'Shift+ArrowRight');
	await selected(page, 3);
	await press('Shift+ArrowLeft');
	await selected(page, 2);
	await shot(page, 'keyboard', false);
	const columns = await page.evaluate(() => getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ').length);
	await press('ArrowDown');
	assert.match(await focused(page), new RegExp(`image-000${3 + columns}`));
	await press('Escape');
	await nothing(page);
	await press('Control+a');
	await bar(page).waitFor();
	await press('Escape', 'Home', 'Enter');
	await page.getByRole('dialog', { name: 'image-0000.jpg' }).waitFor();
	await press('Escape');
	await page.getByRole('dialog').waitFor({ state: 'detached' });
	assert.match(await focused(page), /image-0000/);
	await press('End', 'ArrowDown');
	await page.waitForFunction(() => /image-0(0[6-9]|1)/.test(document.activeElement.innerText));
	await press('Delete');
	await page.getByRole('dialog', { name: /^Delete “image-0/ }).waitFor();
	await press('Escape');
	await page.getByRole('dialog').waitFor({ state: 'detached' });
	assert.match(await focused(page), /image-0/, 'the focus stays');
	// Behind a dialog the keys do nothing.
	await press('Home', 'Enter');
	await page.getByRole('dialog').getByRole('heading', { level: 2 }).click();
	await press('Control+a');
	await nothing(page);
	await press('Escape');
	await page.getByRole('dialog').waitFor({ state: 'detached' });
	// In a field the keys have their usual meaning.
	await page.getByLabel(/^Search by name/).fill('image');
	await press('Control+a');
	await nothing(page);
}

async function asList(page) {
	await page.getByRole('button', { name: 'List', exact: true }).click();
	await box(page, 0).check();
	await box(page, 5).click({ modifiers: ['Shift'] });
	await selected(page, 6);
	await tile(page, 5).focus();
	await page.keyboard.press('Shift+ArrowDown');
	await selected(page, 7);
	assert.match(await focused(page), /^image-0006/);
	await accessible(page, 'a selection of rows');
	await shot(page, 'rows', false);
	await page.getByRole('button', { name: 'Images', exact: true }).click();
}

/** All of a folder, without showing them all. */
async function all(page) {
	await page.goto('about:blank'); // a reload would load as many again as before
	await page.goto(facts.panel + route);
	await tile(page, 0).waitFor();
	await box(page, 0).check();
	await bar(page).getByRole('button', { name: 'Select all shown' }).click();
	await bar(page).getByRole('button', { name: 'Select the rest' }).click();
	await selected(page, 300);
	assert.equal(await bar(page).getByRole('button', { name: 'Select the rest' }).count(), 0, 'there is no rest');
	assert.ok(await page.locator('.grid > li').count() < 150, 'they are not all in the page');
	await shot(page, 'all', false);
	await page.keyboard.press('Escape');
}

async function inDark() {
	const page = await open({ route, dark: true });
	await box(page, 0).check();
	await box(page, 4).click({ modifiers: ['Shift'] });
	await accessible(page, 'a selection in the dark');
	await shot(page, 'dark', false);
}

async function asViewer() {
	const page = await open({ route, user: 'viewer' });
	await box(page, 0).check();
	assert.deepEqual((await bar(page).getByRole('button').allInnerTexts()).map((text) => text.trim()),
		['Select all shown', 'Clear', 'Copy addresses', 'Download']);
	await tile(page, 0).focus();
	await page.keyboard.press('Delete');
	assert.equal(await page.getByRole('dialog').count(), 0);
	assert.equal(await page.getByRole('button', { name: /^(Delete|New) folder/ }).count(), 0);
}

async function byTouch() {
	const page = await open({ route, width: 390, height: 844, touch: true });
	await tile(page, 0).waitFor();
	assert.equal(await box(page, 1).evaluate((input) => getComputedStyle(input.parentElement).opacity), '1', 'always visible on touch');
	const target = await box(page, 1).locator('..').boundingBox();
	assert.ok(target.width >= 24 && target.height >= 24);
	await box(page, 1).tap();
	await box(page, 2).tap();
	await selected(page, 2);
	const actions = await bar(page).boundingBox();
	const navigation = await page.getByRole('navigation', { name: 'Pages' }).boundingBox();
	assert.ok(actions.y + actions.height <= navigation.y + 1, 'the actions are above the navigation');
	await accessible(page, 'a selection on a phone');
	await shot(page, 'phone', false);
	await tile(page, 3).tap();
	await page.getByRole('dialog', { name: 'image-0003.jpg' }).waitFor();
	await page.getByRole('button', { name: 'Close', exact: true }).tap();
	await selected(page, 2);
	await bar(page).getByRole('button', { name: 'Clear' }).tap();
	await nothing(page);
	assert.ok(facts.panel);
}
