-- A deletion hides the links to the entity until its restore (decision 56). Nothing removes them any more.
delete from followers where name = 'dangling_links';
