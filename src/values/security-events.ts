/** The security events of the access log, and what each tells. The list of docs/access-log.md has the same. */
export const securityEvents = {
  sign_in: 'A person signed in to the console, or a client fetched a token.',
  sign_in_failed: 'A wrong secret, or a link that was used or has expired.',
  sign_out: 'A person ended its session of the console.',
  access_refused: 'A caller was refused for its scope or role.',
  token_created: 'A token was made.',
  token_revoked: 'A token was revoked.',
  client_created: 'A client was made.',
  client_revoked: 'A client was revoked.',
  role_created: 'A role was made.',
  role_changed: 'A role was changed.',
  account_created: 'An account of the console was made.',
  account_invited: 'A new invitation link was made for an account.',
  account_changed: 'An account got another role, or was disabled or enabled.',
  account_removed: 'An account was removed.',
  password_changed: 'A person changed the password of its account.',
  key_rotated: 'Another key signs tokens from now on.',
  key_revoked: 'A key that signed tokens was revoked.',
  session_revoked: 'A session of the console was ended by somebody with access to it.',
  settings_changed: 'The settings of the organization were changed.',
  export: 'All people, all records of a stack, or the events of all addresses were read.',
  dossier: 'Everything that is held about a person was read.',
  erasure: 'A person was erased.',
  merge: 'Two people were merged.',
  unmerge: 'A merge was undone.',
} as const

export type SecurityEvent = keyof typeof securityEvents
