-- A search finds scripts without spaces by pairs of characters. The follower of the search fills an index again if its words have
-- another form, and looks once without a change of the log.

alter table search_indexes add column form integer not null default 1;
comment on column search_indexes.form is 'The form of the words that the index has. The first one had no pairs of characters.';

update followers set wake_at = '-infinity' where name = 'search';
