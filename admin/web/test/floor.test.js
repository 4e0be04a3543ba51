// The floor plan: which script may import which, and how wide their lines are.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';

const web = join(import.meta.dirname, '..');
const scripts = ['', 'lib', 'pages'].flatMap((folder) =>
	readdirSync(join(web, folder)).filter((name) => name.endsWith('.js')).map((name) => join(folder, name))
);
const textOf = new Map(scripts.map((script) => [script, readFileSync(join(web, script), 'utf8')]));

/** The scripts that a script imports. */
const importsOf = (script) =>
	[...textOf.get(script).matchAll(/(?:from|import\(?)\s*'(\.[^']+)'/g)].map(([, path]) =>
		join(script, '..', path)
	);

test('no script imports itself through others', () => {
	const done = new Set();
	const visit = (script, way) => {
		assert.ok(!way.includes(script), `circle: ${[...way, script].join(' → ')}`);
		if (done.has(script)) return;
		for (const next of importsOf(script)) visit(next, [...way, script]);
		done.add(script);
	};
	for (const script of scripts) visit(script, []);
	assert.ok(done.size > 20);
});

test('lib knows no page, and every import exists', () => {
	for (const script of scripts) {
		for (const path of importsOf(script)) {
			assert.ok(textOf.has(path), `${script} imports ${path}, which does not exist`);
			assert.ok(!script.startsWith('lib') || path.startsWith('lib'), `${script} imports ${path}`);
		}
	}
});

test('no line is wider than 110 characters', () => {
	for (const [script, text] of textOf) {
		text.split('\n').forEach((line, i) => assert.ok(line.length <= 110, `${script}:${i + 1}`));
	}
});
