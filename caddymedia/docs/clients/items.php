<?php
// Manages images of the alias content:
//   php items.php list [folder]
//   php items.php delete filename ...
//   php items.php move|copy filename new-filename
//   php items.php replace filename photo.jpg
//   php items.php import address
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
declare(strict_types=1);
require __DIR__ . '/MediaClient.php';

/** @param string[] $filenames */
function delete(MediaClient $client, array $filenames): array
{
    if (count($filenames) === 1) {
        $client->deleteImage('content', $filenames[0]);
        return [];
    }
    $kept = $client->deleteImages('content', $filenames);
    $lines = array_map(fn ($filename) => "$filename: $kept[$filename]", array_keys($kept));
    return $lines ? throw new RuntimeException(implode("\n", $lines)) : [];
}

try {
    $client = MediaClient::fromEnvironment();
    $args = array_slice($argv, 2);
    $items = match ($argv[1] ?? '') {
        'list' => $client->images('content', $args[0] ?? ''),
        'delete' => delete($client, $args),
        'move' => [$client->moveImage('content', $args[0], $args[1])],
        'copy' => [$client->moveImage('content', $args[0], $args[1], 'copy_to')],
        'replace' => [$client->replaceImage('content', $args[0], $args[1])],
        'import' => $client->uploadImages([], ['alias' => 'content', 'url' => $args[0]]),
    };
    foreach ($items as $item) {
        echo "$item[full_path] $item[filename]\n";
    }
} catch (RuntimeException $e) {
    fwrite(STDERR, $e->getMessage() . "\n");
    exit(1);
}
