// Names, sizes, durations and times.
import assert from 'node:assert/strict';
import test from 'node:test';
import * as format from '../lib/format.js';

test('labels', () => {
	for (
		const [name, want] of [['cdn_base', 'CDN base'], ['max_size', 'Max size'], ['webp', 'WebP'], ['ca',
			'CA'], ['insecure_skip_host_key', 'Insecure skip host key']]
	) {
		assert.equal(format.label(name), want);
	}
});

test('types in words', () => {
	for (
		const [type, want] of [['image/jpeg', 'JPEG image'], ['image/svg+xml', 'SVG image'], ['video/mp4',
			'MP4 film'], ['audio/x-wav', 'WAV sound'], ['video/quicktime', 'video/quicktime'], [
			'application/pdf',
			'PDF',
		], ['text/plain; charset=utf-8', 'Text'], ['application/zip', 'application/zip'], ['', '']]
	) {
		assert.equal(format.typeName(type), want);
	}
});

test('sizes are parsed', () => {
	for (
		const [text, want] of [['4096', 4096], ['32 MiB', 32 << 20], ['1.5 GB', 1.5e9], ['10kb', 10_000], [
			'1 b',
			1,
		], ['2 TiB', 2 * 1024 ** 4], ['0', 0], [' 7 KiB ', 7168], ['', NaN], ['-1', NaN], ['1,5 MB', NaN], [
			'many',
			NaN,
		], ['1 MiBs', NaN]]
	) {
		assert.equal(format.parseSize(text), want, text);
	}
});

test('an exact size is parsed to the same number', () => {
	for (const bytes of [1, 999, 1000, 1023, 1024, 1025, 33554432, 33554433, 5 * 1024 ** 4, 2 ** 52]) {
		assert.equal(format.parseSize(format.exactSize(bytes)), bytes);
	}
});

test('an exact size is in the first unit in which it is whole', () => {
	for (
		const [bytes, want] of [[0, '0 B'], [999, '999 B'], [1000, '1 kB'], [1024, '1 KiB'], [1234, '1234 B'],
			[
				10e6,
				'10 MB',
			], [3 << 29, '1536 MiB'], [2 ** 31, '2 GiB']]
	) {
		assert.equal(format.exactSize(bytes), want);
	}
});

test('estimated times are rough', () => {
	for (
		const [ms, want] of [[1, 'less than a minute left'], [61e3, 'about 2 minutes left'], [
			2.4 * 3600e3,
			'about 2 hours left',
		]]
	) {
		assert.equal(format.timeLeft(ms), want);
	}
});

test('sizes for display', () => {
	for (const [bytes, want] of [[0, '0 B'], [1023, '1023 B'], [1536, '1.5 KiB'], [32 << 20, '32 MiB'], [
		1024 ** 6,
		'1048576 TiB',
	]]) {
		assert.equal(format.size(bytes), want);
	}
});

test('durations', () => {
	for (const [value, want] of [[90e9, '1m30s'], [5400e9, '1h30m'], [1.5e6, '1ms500us'], [0, ''], ['2d',
		'2d'], [undefined, '']])
	{
		assert.equal(format.duration(value), want);
	}
	for (const text of ['30s', '1h30m', '1.5h', '2d', '10µs']) assert.ok(format.isDuration(text), text);
	for (const text of ['', '30', 's', '1 h', '1w', '-1s']) assert.ok(!format.isDuration(text), text);
});

test('ages', () => {
	const now = Date.parse('2026-05-04T12:00:00Z');
	for (
		const [time, want] of [['2026-05-04T11:59:58Z', 'just now'], ['2026-05-04T11:59:30Z',
			'30 seconds ago'], ['2026-05-04T11:57:00Z', '3 minutes ago'], ['2026-05-03T11:00:00Z',
			'yesterday'], ['2024-05-01T00:00:00Z', '2 years ago'], ['2026-05-18T11:59:50Z', 'in 14 days'], [
			'2026-05-04T13:20:00Z',
			'in 1 hour',
		]]
	) {
		assert.equal(format.ago(time, now), want);
	}
});

test('texts', () => {
	assert.equal(format.plural(1, 'item'), '1 item');
	assert.equal(format.plural(5000, 'item'), '5,000 items');
	assert.equal(format.notDone(1, 1, 'moved'), 'The item is not moved');
	assert.equal(format.notDone(1200, 5000, 'moved'), '1,200 of 5,000 items not moved');
	assert.equal(format.firstSentence('A folder, e.g. v1.2 of it. It grows.'), 'A folder, e.g.');
	assert.equal(format.firstSentence('No full stop'), 'No full stop');
	assert.equal(format.literal('`append_time`'), 'append_time');
	assert.equal(format.literal('the `name` of it'), null);
	assert.equal(format.text({ quality: 80, lossless: true }), 'Quality: 80, Lossless: on');
	assert.equal(format.text({}), 'on');
	assert.equal(format.text(false), 'off');
	assert.equal(format.onOff('`true` with `endpoint`, else `false`'), 'on with `endpoint`, else off');
});

test('names of folders as the server stores them', () => {
	for (
		const [name, want] of [['Žofie & friends', 'zofie-friends'], ['a_b-2', 'a_b-2'], ['v1.2', 'v1-2'], [
			'--x--',
			'x',
		], ['東京', '東京'], ['…', '…']]
	) {
		assert.equal(format.folderName(name, true), want, name);
		assert.equal(format.folderName(name, false), name);
	}
});
