// Formats the scripts that are named, or with --check lists those whose format differs.
import { createFromBuffer } from '@dprint/formatter';
import { getPath } from '@dprint/typescript';
import { readFileSync, writeFileSync } from 'node:fs';

const formatter = createFromBuffer(readFileSync(getPath()));
formatter.setConfig({ lineWidth: 110, useTabs: true, indentWidth: 4, newLineKind: 'lf' }, {
	quoteStyle: 'alwaysSingle',
	useBraces: 'maintain',
	preferHanging: true,
	'arguments.preferHanging': 'always',
	'parameters.preferHanging': 'never',
	'objectExpression.preferHanging': false,
	'arrowFunction.useParentheses': 'force',
	'conditionalExpression.linePerExpression': false,
	nextControlFlowPosition: 'sameLine',
});
const check = process.argv[2] === '--check';
for (const filePath of process.argv.slice(check ? 3 : 2)) {
	const format = (fileText) => formatter.formatText({ filePath, fileText });
	const fileText = readFileSync(filePath, 'utf8');
	if (format(fileText) === fileText) continue;
	console.error(`${filePath}: ${check ? 'not formatted' : 'formatted'}`);
	if (check) process.exitCode = 1;
	else writeFileSync(filePath, format(format(fileText))); // a second pass wraps what the first has moved
}
