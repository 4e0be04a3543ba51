<?php
// Manages images of the alias content. Without arguments it prints its usage.
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
declare(strict_types=1);
require __DIR__ . '/MediaClient.php';

$usage = <<<'END'
usage: php items.php list [folder]
       php items.php delete filename ...
       php items.php move|copy filename new-filename
       php items.php replace filename photo.jpg
       php items.php import address
END;

/** @param string[] $filenames */
function delete(MediaClient $client, array $filenames): array
{
    $kept = $client->delete('image', 'content', $filenames);
    $lines = array_map(fn ($filename) => "$filename: $kept[$filename]", array_keys($kept));
    return $lines ? throw new RuntimeException(implode("\n", $lines)) : [];
}

try {
    $command = $argv[1] ?? '';
    $args = array_slice($argv, 2);
    $least = ['list' => 0, 'delete' => 1, 'move' => 2, 'copy' => 2, 'replace' => 2, 'import' => 1][$command] ?? PHP_INT_MAX;
    if (count($args) < $least) {
        throw new RuntimeException($usage);
    }
    $client = MediaClient::fromEnvironment();
    $items = match ($command) {
        'list' => $client->items('image', 'content', $args[0] ?? ''),
        'delete' => delete($client, $args),
        'move' => [$client->move('image', 'content', $args[0], $args[1])],
        'copy' => [$client->move('image', 'content', $args[0], $args[1], 'copy_to')],
        'replace' => [$client->replace('image', 'content', $args[0], $args[1])],
        'import' => $client->uploadImages([], ['alias' => 'content', 'url' => $args[0]]),
    };
    foreach ($items as $item) {
        echo "$item[full_path] $item[filename]\n";
    }
} catch (RuntimeException $e) {
    fwrite(STDERR, $e->getMessage() . "\n");
    exit(1);
}
