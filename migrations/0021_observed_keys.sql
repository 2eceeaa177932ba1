-- The keys of stored values that no attribute declares are counted from the rows when somebody asks for them.

drop table observed_keys;

delete from followers where name = 'observed_keys';
