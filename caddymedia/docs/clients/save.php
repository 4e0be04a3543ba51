<?php
// Saves the form of a page whose uploads wait for it. The address of this script is /save.
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
// The page sends the field held[] for each upload, in their order, and kind, image or file.
declare(strict_types=1);
require __DIR__ . '/MediaClient.php';

function answer(int $status, string ...$lines): void
{
    http_response_code($status);
    header('Content-Type: text/plain; charset=utf-8');
    echo implode("\n", $lines);
}

session_start(['read_and_close' => true]);
if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    answer(405, 'use POST');
} elseif (!isset($_SESSION['user'])) { // which your login sets
    answer(403, 'log in first');
} else {
    $kind = ($_POST['kind'] ?? '') === 'file' ? 'file' : 'image';
    try {
        $items = MediaClient::fromEnvironment()->keep($kind, 'content', (array) ($_POST['held'] ?? []));
        // Save the post in your database here, with the filename of each item.
        answer(200, 'It is saved.', ...array_column($items, 'full_path'));
    } catch (MediaRefusal $e) { // such as: an upload has ended
        answer(422, $e->getMessage());
    } catch (RuntimeException $e) {
        error_log($e->getMessage());
        answer(502, 'It cannot be saved now. Go back and try it again.');
    }
}
