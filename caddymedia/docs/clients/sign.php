<?php

// Prints the query of a signed address:
//
// php sign.php <kind> <alias> filename|folder <name> <expires> [<rendition> [<download> [<generation>]]]
//
// MEDIA_SIGNING_KEY is in the environment.

declare(strict_types=1);

/** Returns the query of an address of a private item, or of all below a folder. */
function media_sign(
    string $key,
    string $kind,
    string $alias,
    string $scope,
    string $name,
    int $expires,
    string $rendition = '',
    string $download = '',
    int $generation = 0
): string {
    $text = '';
    foreach (['media1', $kind, $alias, $scope, $name, $rendition, (string) $expires, $download, (string) $generation] as $field) {
        $text .= strlen($field) . ':' . $field; // strlen counts bytes
    }
    $mac = hash_hmac('sha256', $text, $key, true);
    $query = ['expires' => $expires, 'signature' => rtrim(strtr(base64_encode($mac), '+/', '-_'), '=')];
    if ($scope === 'folder') {
        $query['scope'] = $name;
    }
    if ($download !== '') {
        $query['download'] = $download;
    }
    return http_build_query($query, '', '&'); // whatever arg_separator.output of the site is
}

// From here on it is for trials.

$key = getenv('MEDIA_SIGNING_KEY');
if ($key === false || $key === '') {
    fwrite(STDERR, "set MEDIA_SIGNING_KEY in the environment\n");
    exit(1);
}
if ($argc < 6 || $argc > 9) {
    fwrite(STDERR, "php sign.php <kind> <alias> filename|folder <name> <expires> [<rendition> [<download> [<generation>]]]\n");
    exit(1);
}
[, $kind, $alias, $scope, $name, $expires] = $argv;
echo media_sign($key, $kind, $alias, $scope, $name, (int) $expires, $argv[6] ?? '', $argv[7] ?? '', (int) ($argv[8] ?? 0)), "\n";
