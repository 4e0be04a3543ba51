<?php
/**
 * Plugin Name: Images of posts in the media service
 *
 * The images of a post are in its field media_filename, once for each image.
 */
declare(strict_types=1);
require __DIR__ . '/MediaClient.php';

// WordPress deletes the fields of the post after this.
add_action('before_delete_post', function (int $post): void {
    $filenames = get_post_meta($post, 'media_filename');
    if (!$filenames) {
        return;
    }
    try {
        $kept = MediaClient::fromEnvironment()->delete('image', 'content', $filenames); // one request
    } catch (RuntimeException $e) { // the post is deleted nevertheless
        $kept = array_fill_keys($filenames, $e->getMessage());
    }
    foreach ($kept as $filename => $message) {
        error_log("$filename of post $post is not deleted: $message");
    }
});
