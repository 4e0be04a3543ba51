// Reading a form, and the differences between two versions of an entry.
import assert from 'node:assert/strict';
import test from 'node:test';
import { differences } from '../lib/conflict.js';
import { inWords } from '../lib/entry.js';
import { allFields, collect } from '../lib/form.js';

const field = (path, value, more = {}) => ({ path, mark() {}, read: () => value, ...more });
const group = (path, on, ...inner) => ({ path, mark() {}, isOn: () => on, inner });

test('a form is collected', () => {
	const fields = [field('@name', 'photos'), field('driver.bucket', 'b'), field('sanitize', undefined),
		field('driver.secret', undefined, { secret: () => 'x' }),
		field('driver.kept', undefined, { secret: () => undefined }),
		group('webp', true, field('webp.quality', 80)), group('off', false, field('off.a', 1)),
		group('alone', true),
		group('sizes', true, group('sizes.a', true, field('sizes.a.width', 5)), group('sizes.b', true)),
		group('none', false)];
	assert.deepEqual(collect(fields), {
		value: {
			'@name': 'photos',
			driver: { bucket: 'b' },
			webp: { quality: 80 },
			alone: {},
			sizes: { a: { width: 5 }, b: {} },
		},
		secrets: { 'driver.secret': 'x' },
		problems: [],
	});
	assert.deepEqual(allFields(fields).map(({ path }) => path), ['@name', 'driver.bucket', 'sanitize',
		'driver.secret', 'driver.kept', 'webp', 'webp.quality', 'off', 'off.a', 'alone', 'sizes', 'sizes.a',
		'sizes.a.width', 'sizes.b', 'none']);
});

test('problems of a form are collected', () => {
	const bad = field('a', 0, {
		read: () => {
			throw new Error('A is required.');
		},
	});
	const { value, problems } = collect([bad, field('b', 2), group('g', true, bad)]);
	assert.deepEqual(value, { b: 2, g: {} });
	assert.deepEqual(problems, [{ field: bad, message: 'A is required.' }, {
		field: bad,
		message: 'A is required.',
	}]);
});

test('differences of two versions', () => {
	const now = {
		value: {
			driver: { name: 's3', bucket: 'a' },
			extensions: ['pdf', 'zip'],
			webp: {},
			max_size: 5 << 20,
			max_pixels: 100,
			timeout: 90e9,
		},
		secrets: ['driver.secret', 'driver.token'],
	};
	const mine = {
		value: {
			'@name': 'x',
			driver: { name: 's3', bucket: 'b' },
			extensions: ['pdf'],
			sanitize: false,
			max_size: 7 << 20,
			max_pixels: 200,
			timeout: '2m',
		},
		secrets: { 'driver.secret': 'new', 'driver.token': '' },
	};
	const typeOf = (path) => ({ max_size: 'size', timeout: 'duration' })[path];
	assert.deepEqual(differences(now, mine, typeOf), [
		{ path: 'driver.bucket', now: 'a', mine: 'b' },
		{ path: 'driver.secret', now: 'set', mine: 'a new value' },
		{ path: 'driver.token', now: 'set', mine: 'removed' },
		{ path: 'extensions', now: 'pdf, zip', mine: 'pdf' },
		{ path: 'max_pixels', now: '100', mine: '200' },
		{ path: 'max_size', now: '5 MiB', mine: '7 MiB' },
		{ path: 'sanitize', now: 'not set', mine: 'off' },
		{ path: 'timeout', now: '1m30s', mine: '2m' },
		{ path: 'webp', now: 'on', mine: 'not set' },
	]);
	assert.deepEqual(differences({ value: { a: 1 } }, { value: { a: 1 }, secrets: {} }, typeOf), []);
});

test('problems name options by their labels', () => {
	const fields = [{ path: 'driver.host_key', name: 'Host key' }, {
		path: 'driver.known_hosts',
		name: 'Known hosts',
	}];
	const problem = { message: 'host_key is required, unless known_hosts or no_such_option is set' };
	const words = '“Host key” is required, unless “Known hosts” or no_such_option is set';
	assert.equal(inWords(problem, fields), words);
	assert.equal(inWords({ ...problem, field: { advice: 'Ask.' } }, fields), `${words}. Ask.`);
});
