-- Responses that show the secret of a webhook were stored under the Idempotency-Key of their request. They are deleted, so a
-- repeated request runs again.
delete from idempotency_keys
where body like '%whsec\_%' and body::jsonb->>'secret' like 'whsec\_%' and body::jsonb ? 'url';
