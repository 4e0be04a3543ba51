// Dropped, chosen and pasted files: trees, hidden ones, names, refusals.
import assert from 'node:assert/strict';
import test from 'node:test';
import { below, chosen, hiddenPart, named, refusal, walk } from '../lib/files.js';

const file = (name, size = 1) => new File(['x'.repeat(size)], name);

/** An entry as browsers have it; a folder is read in portions of two. */
function entry(path, content) {
	const common = {
		name: path.split('/').at(-1),
		fullPath: `/${path}`,
		isDirectory: Array.isArray(content),
	};
	if (!common.isDirectory) {
		return {
			...common,
			file: (resolve, reject) =>
				content === null ? reject(new Error('gone')) : resolve(file(common.name)),
		};
	}
	return {
		...common,
		createReader: () => {
			const left = [...content];
			return { readEntries: (resolve) => setTimeout(() => resolve(left.splice(0, 2))) };
		},
	};
}

async function read(entries) {
	const hidden = new Set();
	const found = [];
	for await (const some of walk(entries, hidden)) found.push(...some);
	return { hidden: [...hidden], found };
}

test('a tree is read whole, without its hidden files', async () => {
	const { hidden, found } = await read([
		file('single.txt'),
		entry('trip', [
			entry('trip/.DS_Store'),
			entry('trip/a.jpg'),
			entry('trip/b.jpg'),
			entry('trip/.git', [entry('trip/.git/config')]),
			entry('trip/day 1', [entry('trip/day 1/c.jpg'), entry('trip/day 1/Thumbs.db')]),
			entry('trip/empty', []),
			entry('trip/gone.jpg', null),
		]),
	]);
	assert.deepEqual(hidden.toSorted(), ['trip/.DS_Store', 'trip/.git', 'trip/day 1/Thumbs.db']);
	assert.deepEqual(found.map(({ folder, name }) => [folder, name]), [['', 'single.txt'], ['trip', 'a.jpg'],
		[
			'trip',
			'b.jpg',
		], ['trip', 'gone.jpg'], ['trip/day 1', 'c.jpg']]);
	assert.equal(found[3].file, undefined);
});

test('a folder that cannot be read is one error', async () => {
	const locked = {
		...entry('trip/locked', []),
		createReader: () => ({ readEntries: (_, reject) => reject() }),
	};
	const { found } = await read([entry('trip', [locked, entry('trip/a.jpg')])]);
	assert.deepEqual(found.map(({ folder, name, file }) => [folder, name, Boolean(file)]), [['trip', 'a.jpg',
		true], ['trip', 'locked', false]]);
});

test('a chosen folder is the same tree', () => {
	const hidden = new Set();
	const files = ['trip/a.jpg', 'trip/day 1/c.jpg', 'trip/.git/a', 'trip/.git/b'].map((path) =>
		Object.assign(file(path.split('/').at(-1)), { webkitRelativePath: path })
	);
	assert.deepEqual(chosen(files, hidden).map(({ folder, name }) => `${folder}/${name}`), ['trip/a.jpg',
		'trip/day 1/c.jpg']);
	assert.deepEqual([...hidden], ['trip/.git']);
});

test('hidden parts', () => {
	for (const [path, want] of [['a/b.txt', ''], ['a/.b/c', 'a/.b'], ['a/__MACOSX/b', 'a/__MACOSX'], [
		'.x',
		'.x',
	], ['a/desktop.ini', 'a/desktop.ini'], ['a.b/c..d', '']]) assert.equal(hiddenPart(path), want);
});

test('the sub folder of a tree', () => {
	for (const [target, folder, want] of [['', '', ''], ['x', '', 'x'], ['/', '', '/'], ['', 'trip/a',
		'trip/a'], ['/', 'trip', 'trip'], ['x/y/', 'trip', 'x/y/trip']])
		assert.equal(below(target, folder), want);
});

test('files are refused that the server would refuse', () => {
	const docs = { kind: 'file', name: 'docs', extensions: ['pdf', 'txt'], max_size: 10 };
	const images = { kind: 'img', name: 'photos', extensions: ['gif', 'jpg', 'png'], max_size: 10 };
	const renaming = { ...images, settings: { rename_mismatched: true } };
	const levels = (n) => Array(n).fill('a').join('/');
	for (
		const [alias, name, size, folder, want] of [
			[docs, 'a.txt', 10, '', ''],
			[docs, 'A.TXT', 10, levels(16) + '/', ''],
			[docs, 'a.txt', 11, '', 'larger than 10 B'],
			[docs, 'a.exe', 1, '', '.exe is not accepted; files may be pdf or txt'],
			[docs, 'README', 1, '', 'the name has no extension; files may be pdf or txt'],
			[images, 'a.b.TXT', 1, '',
				'.txt is not accepted; images may be gif, jpg or png; choose a library for files'],
			[images, 'a.WEBP', 1, '', '.webp is not accepted; images may be gif, jpg or png; '
				+ 'to accept it, an administrator adds formats webp to the image alias photos'],
			[docs, 'a.txt', 1, levels(17), 'the sub folder has more than 16 levels'],
			[docs, 'a.txt', 1, 'ž'.repeat(257), 'the sub folder is longer than 512 bytes'],
			[images, 'a.jfif', 1, '', ''],
			[docs, 'a.jfif', 1, '', '.jfif is not accepted; files may be pdf or txt'],
			[renaming, 'blob', 1, '', ''],
			[renaming, 'a.jpg_large', 1, '', ''],
			// The server may read these names differently.
			[docs, 'a.txt.', 1, '', ''],
			[docs, 'a．txt', 1, '', ''],
			[docs, '.txt', 1, '', ''],
		]
	) {
		assert.equal(refusal(alias, { name, file: file(name, size), folder: '' }, folder), want, name);
	}
	assert.match(refusal(docs, { name: 'a.txt', folder: '' }, ''), /cannot read/);
});

test('pasted pictures get a name', () => {
	const now = new Date(2026, 10, 26, 10, 45, 12);
	const taken = new Set();
	const names = ['image.png', 'image.png', 'holiday.png', 'image.final.png'].map((name) =>
		named(file(name), now, taken).name
	);
	assert.deepEqual(names, ['pasted-20261126-104512.png', 'pasted-20261126-104512-2.png', 'holiday.png',
		'image.final.png']);
});
