import js from '@eslint/js';
import globals from 'globals';

export default [
	js.configs.recommended,
	{ files: ['admin/web/**'], languageOptions: { globals: globals.browser } },
	{ files: ['.ci/web/**', 'admin/web/test/**'], languageOptions: { globals: globals.node } },
	{
		rules: {
			eqeqeq: ['error', 'always', { null: 'ignore' }],
			'no-restricted-properties': ['error',
				...['innerHTML', 'outerHTML', 'insertAdjacentHTML'].map((property) => ({ property }))],
			'no-var': 'error',
			'prefer-const': 'error',
		},
	},
];
