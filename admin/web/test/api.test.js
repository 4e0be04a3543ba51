// Addresses of routes and items, and answers that come from a login.
import assert from 'node:assert/strict';
import test from 'node:test';
import { isLogin, parse, route } from '../lib/api.js';
import { folderOf, itemsHash, parts } from '../lib/links.js';

test('routes', () => {
	assert.equal(route(['items', 'img', 'a b', 'ž/%']), 'api/items/img/a%20b/%C5%BE%2F%25');
	assert.equal(route(['items'], { folder: '', search: 'a&b', cursor: undefined, limit: 60 }),
		'api/items?search=a%26b&limit=60');
});

test('pages of items', () => {
	assert.equal(itemsHash('img', 'content'), '#/items/img/content');
	assert.equal(itemsHash('img', 'content', '26-05/04', { search: '', item: '26-05/04/a b.jpg' }),
		'#/items/img/content/26-05/04?item=26-05%2F04%2Fa+b.jpg');
	assert.deepEqual(parts('/a//b.jpg'), ['a', 'b.jpg']);
	assert.equal(folderOf('a/b/c.jpg'), 'a/b');
	assert.equal(folderOf('c.jpg'), '');
});

test('the end of a session is recognised', () => {
	const html = 'text/html; charset=utf-8';
	for (const [status, type] of [[0, null], [401, 'application/json'], [200, html], [302, html], [403,
		html]])
	{
		assert.ok(isLogin(status, type), `${status} ${type}`);
	}
	for (const [status, type] of [[200, 'application/json'], [403, 'application/json'], [502, html], [404,
		html]])
	{
		assert.ok(!isLogin(status, type), `${status} ${type}`);
	}
});

test('JSON is parsed', () => {
	assert.deepEqual(parse('{"a":1}'), { a: 1 });
	assert.deepEqual(parse(''), {});
	assert.equal(parse('<html>'), null);
});
