// Texts to copy about an item, in several languages.
import assert from 'node:assert/strict';
import test from 'node:test';

globalThis.location = { origin: 'https://media.example', hostname: 'media.example' };
const { s3Settings, signedUntil, snippets } = await import('../lib/snippets.js');

const images = { kind: 'img', name: 'photos', address: '/static/img/photos' };
const files = { kind: 'file', name: 'docs', address: '/static/file/docs' };
const photo = { filename: 'a/b.jpg', full_path: 'https://media.example/static/img/photos/a/b.jpg' };

test('an image', () => {
	assert.deepEqual(snippets(images, photo, 'A tree'), {
		Markdown: '![A tree](https://media.example/static/img/photos/a/b.jpg)',
		'HTML image': '<img src="https://media.example/static/img/photos/a/b.jpg" alt="A tree">',
		'Template function': '{{image_path "photos"}}/a/b.jpg',
	});
});

test('an image with a variant or renditions', () => {
	const webp = photo.full_path + '.webp';
	assert.equal(snippets(images, { ...photo, webp }, '')['HTML picture'], [
		'<picture>',
		'  <source srcset="https://media.example/static/img/photos/a/b.jpg.webp" type="image/webp">',
		'  <img src="https://media.example/static/img/photos/a/b.jpg" alt="">',
		'</picture>',
	].join('\n'));
	const srcset = '/static/img/photos@small/a/b.jpg 320w, /static/img/photos/a/b.jpg 640w';
	const texts = snippets(images, { ...photo, webp, srcset }, '');
	assert.equal(texts['HTML picture'], undefined);
	assert.equal(texts.srcset,
		'https://media.example/static/img/photos@small/a/b.jpg 320w, https://media.example/static/img/photos/a/b.jpg 640w');
	assert.match(texts['HTML image'], /srcset="\S+ 320w,\s+\S+ 640w"\s+sizes="100vw" alt="">$/);
});

test('a file', () => {
	const address = 'https://media.example/static/file/docs/a%20%281%29.pdf';
	assert.deepEqual(snippets(files, { filename: 'a (1).pdf', full_path: address }, 'unused'), {
		Markdown: '[a (1).pdf](https://media.example/static/file/docs/a%20%281%29.pdf)',
		'HTML link': '<a href="https://media.example/static/file/docs/a%20%281%29.pdf">a (1).pdf</a>',
		'Template function': '{{file_path "docs"}}/a%20%281%29.pdf',
	});
});

test('nothing leaves its place', () => {
	const name = '](x) [*a*] <b> `c` \\ {{d}} & "e".txt';
	const odd = { filename: name, full_path: 'https://media.example/static/file/docs/x(y).txt' };
	const texts = snippets(files, odd, '');
	assert.equal(texts.Markdown,
		'[\\](x) \\[\\*a\\*\\] \\<b\\> \\`c\\` \\\\ \\{\\{d\\}\\} \\& "e".txt](https://media.example/static/file/docs/x%28y%29.txt)');
	assert.doesNotMatch(texts['HTML link'].slice(3, -4), /[<{`']|""/);
	const alt = '"> <script>\n![x](y)';
	assert.equal(snippets(images, photo, alt).Markdown,
		'!["\\> \\<script\\> \\!\\[x\\](y)](https://media.example/static/img/photos/a/b.jpg)');
	assert.equal(snippets(images, photo, alt)['HTML image'],
		'<img src="https://media.example/static/img/photos/a/b.jpg" alt="&#34;&#62; &#60;script&#62;\n![x](y)">');
});

test('a private item has signed addresses, and the function that signs them', () => {
	const query = 'expires=1700000000&signature=abc';
	const item = { ...photo, query };
	const hidden = { ...images, private: true };
	assert.deepEqual(snippets(hidden, item, ''), {
		Markdown: `![](https://media.example/static/img/photos/a/b.jpg?${query})`,
		'HTML image':
			'<img src="https://media.example/static/img/photos/a/b.jpg?expires=1700000000&#38;signature=abc" alt="">',
		'Template function': '{{image_url "photos" "a/b.jpg" "1h"}}',
	});
	assert.equal(signedUntil(item), '2023-11-14T22:13:20.000Z');
	assert.deepEqual(Object.keys(snippets(hidden, { ...item, query: '' }, '')), ['Template function']);
	assert.equal(signedUntil(photo), null);
});

test('programs that know S3', () => {
	const settings = s3Settings('shop', { address: 'https://s3.example', region: 'eu-north-1' });
	assert.deepEqual(settings, {
		'rclone, in its configuration file': [
			'[media]',
			'type = s3',
			'provider = Other',
			'endpoint = https://s3.example',
			'region = eu-north-1',
			'access_key_id = shop',
			'secret_access_key = the S3 secret',
		].join('\n'),
		'AWS environment variables': [
			'export AWS_ENDPOINT_URL=\'https://s3.example\'',
			'export AWS_REGION=\'eu-north-1\' AWS_DEFAULT_REGION=\'eu-north-1\'',
			'export AWS_ACCESS_KEY_ID=\'shop\'',
			'export AWS_SECRET_ACCESS_KEY=\'the S3 secret\'',
		].join('\n'),
	});
	const own = s3Settings('shop', { address: 'http://*:9000', region: 'us-east-1' });
	for (const text of Object.values(own)) assert.match(text, /http:\/\/media\.example:9000\b/);
});
