<?php
// Uploads images:  php upload.php photo.jpg ...
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
declare(strict_types=1);
require __DIR__ . '/MediaClient.php';

try {
    if (!extension_loaded('curl')) {
        throw new RuntimeException('install the extension curl of PHP');
    }
    foreach (MediaClient::fromEnvironment()->uploadImages(array_slice($argv, 1), ['alias' => 'content']) as $item) {
        echo "$item[full_path] $item[filename]\n";
    }
} catch (RuntimeException $e) {
    fwrite(STDERR, $e->getMessage() . "\n");
    exit(1);
}
