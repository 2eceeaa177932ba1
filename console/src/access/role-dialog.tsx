import type { Role, RoleBody, Scope } from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { useDefinitions } from '../entity/schema.ts'
import { Checkbox, TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { messages } from './messages.ts'
import { rolesQuery } from './queries.ts'
import { FieldMatrix, type RoleFields } from './role-fields.tsx'
import { ScopeChoice } from './scope-choice.tsx'

/** A dialog that makes a role, or changes one. */
export function RoleDialog({ role, onClose }: { role: Role | null; onClose: () => void }) {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const [key, setKey] = useState(role?.key ?? '')
  const [name, setName] = useState(role?.name ?? '')
  const [scopes, setScopes] = useState<Scope[]>(role?.scopes ?? [])
  const [fields, setFields] = useState<RoleFields | null>(role ? role.fields : { people: { read: [], write: [] } })
  const save = useWrite(
    (body: Omit<RoleBody, 'key'>) =>
      role ? client.access.roles.patch(role.key, body) : client.access.roles.create({ ...body, key: key.trim() }),
    { refresh: [rolesQuery.queryKey], onSuccess: onClose },
  )
  return (
    <FormDialog
      title={role ? role.name : texts.newRole}
      size="wide"
      onSubmit={() => save.mutate({ name: name.trim() || key.trim(), scopes, fields })}
      write={save}
      submit={role ? texts.save : texts.create}
      onClose={onClose}
    >
      {!role && (
        <TextField
          label={texts.roleKey}
          help={texts.roleKeyHelp}
          name="/key"
          isRequired
          autoFocus
          value={key}
          onChange={setKey}
        />
      )}
      <TextField label={texts.name} name="/name" value={name} onChange={setName} />
      <ScopeChoice scopes={scopes} onChange={setScopes} />
      <Checkbox
        name="/fields"
        help={texts.everyFieldHelp}
        isSelected={fields === null}
        onChange={isEvery => setFields(isEvery ? null : { people: { read: [], write: [] } })}
      >
        {texts.everyField}
      </Checkbox>
      {fields !== null && <FieldMatrix definitions={definitions} fields={fields} onChange={setFields} />}
    </FormDialog>
  )
}
