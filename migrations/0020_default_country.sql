-- An organization names the country of phone numbers that are written without a prefix.

alter table organization_settings add column default_country text;

comment on column organization_settings.default_country is 'The country (ISO 3166) of phone numbers without a prefix. Null: such a number is none.';
