<?php
// A model whose images are in the media service: the file is app/Models/Post.php.
declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\Model;
use MediaClient;

/** @property string[] $images the filenames, a column of JSON */
class Post extends Model
{
    protected $casts = ['images' => 'array'];

    protected static function booted(): void
    {
        // If the service cannot be reached, the exception keeps the post.
        static::deleting(function (Post $post): void {
            $kept = MediaClient::fromEnvironment()->delete('image', 'content', $post->images ?? []); // one request
            foreach ($kept as $filename => $message) {
                error_log("$filename is not deleted: $message");
            }
        });
    }

    /**
     * Adds images that the form has uploaded, and saves the post. It is all of them, or none with a
     * MediaRefusal.
     *
     * @param string[] $ids
     */
    public function keepImages(array $ids): void
    {
        $items = MediaClient::fromEnvironment()->keep('image', 'content', $ids);
        $this->images = [...$this->images ?? [], ...array_column($items, 'filename')];
        $this->save();
    }
}
