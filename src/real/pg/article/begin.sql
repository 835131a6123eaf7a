-- The article's second statement: nobody else sees it before the job is over.
UPDATE article SET status = 'processing' WHERE id = $1
