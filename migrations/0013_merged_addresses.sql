-- A merge gives up no address: the email and phone of the merged person that the survivor does not take still lead to the survivor.

alter table merges add column email_key text collate "C", add column mobile_key text collate "C";
create index merges_email_key on merges (organization_id, email_key, person_id) where email_key is not null;
create index merges_mobile_key on merges (organization_id, mobile_key, person_id) where mobile_key is not null;
comment on column merges.email_key is
  'The email of the merged person, as a key, while it leads to person_id. Null: the survivor took it, or the merge was undone.';
comment on column merges.mobile_key is
  'The phone of the merged person, as a key, while it leads to person_id. Null: the survivor took it, or the merge was undone.';

-- Earlier merges: the addresses whose keys SQL computes as kith does. These are emails of ASCII, and phones with a prefix and no trunk digit.
update merges m set email_key = lower(m.undo->'other'->'columns'->>'email')
where m.unmerged_sequence is null and m.undo->'other'->'columns'->>'email' ~ '^[ -~]+$'
  and length(m.undo->'other'->'columns'->>'email') <= 600
  and not exists (
    select from entities e
    where e.organization_id = m.organization_id and e.stack_id = 0 and e.id = m.person_id
      and e.email_key = lower(m.undo->'other'->'columns'->>'email')
  );
update merges m set mobile_key = p.key from (
  select m.organization_id, m.id, case
      when m.undo->'other'->'columns'->>'mobile_number' ~ '^\+[1-9][0-9 .-]+$'
        then '+' || regexp_replace(m.undo->'other'->'columns'->>'mobile_number', '\D', '', 'g')
      when m.undo->'other'->'columns'->>'mobile_prefix' ~ '^\+?[1-9][0-9]{0,2}$'
        and m.undo->'other'->'columns'->>'mobile_number' ~ '^[1-9][0-9 .-]+$'
        then '+' || ltrim(m.undo->'other'->'columns'->>'mobile_prefix', '+')
          || regexp_replace(m.undo->'other'->'columns'->>'mobile_number', '\D', '', 'g')
    end as key
  from merges m where m.unmerged_sequence is null and m.undo is not null
) p
where m.organization_id = p.organization_id and m.id = p.id and p.key ~ '^\+[0-9]{7,15}$'
  and not exists (
    select from entities e
    where e.organization_id = m.organization_id and e.stack_id = 0 and e.id = m.person_id and e.mobile_key = p.key
  );
