import type { Role } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useWrite } from '../app/write.ts'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, EmptyState, Loading, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { rolesQuery } from './queries.ts'
import { RoleDialog } from './role-dialog.tsx'
import { ScopeList } from './scope-choice.tsx'

/** The roles: what clients, tokens and sessions may do, and which fields they see. */
export function RoleList() {
  const texts = useMessages(messages)
  const mayWrite = useScope('access:write')
  // Null: a new role.
  const [edited, setEdited] = useState<Role | null | undefined>(undefined)
  const roles = useQuery(rolesQuery)
  return (
    <Section
      title={texts.roles}
      actions={
        mayWrite && (
          <Button look="primary" onPress={() => setEdited(null)}>
            {texts.newRole}
          </Button>
        )
      }
    >
      <p className={styles.muted}>{texts.rolesAdvice}</p>
      {roles.isPending && <Loading />}
      {roles.error && <Problem error={roles.error} onRetry={() => roles.refetch()} />}
      {roles.data?.length === 0 && <EmptyState title={texts.noRoles} />}
      {roles.data && roles.data.length > 0 && <RoleTable roles={roles.data} onEdit={mayWrite ? setEdited : null} />}
      {edited !== undefined && <RoleDialog role={edited} onClose={() => setEdited(undefined)} />}
    </Section>
  )
}

function RoleTable({ roles, onEdit }: { roles: Role[]; onEdit: ((role: Role) => void) | null }) {
  const texts = useMessages(messages)
  const change = useWrite(
    ({ key, state }: Role) => client.access.roles.patch(key, { state: state === 'active' ? 'archived' : 'active' }),
    { refresh: [rolesQuery.queryKey] },
  )
  return (
    <>
      {change.error && <Problem error={change.error} />}
      <Table label={texts.roles} headers={[texts.name, texts.roleFields, texts.scopes, texts.state, '']}>
        {roles.map(role => (
          <tr key={role.key}>
            <th scope="row">
              {onEdit ? (
                <Button look="quiet" onPress={() => onEdit(role)}>
                  {role.name}
                </Button>
              ) : (
                role.name
              )}
              <div className={styles.muted}>
                <code>{role.key}</code>
              </div>
            </th>
            <td>{role.fields ? Object.keys(role.fields).join(', ') || texts.noFields : texts.allFields}</td>
            <td>
              <ScopeList scopes={role.scopes} />
            </td>
            <td>
              {role.state === 'active' ? (
                <Badge kind="positive">{texts.works}</Badge>
              ) : (
                <Badge kind="negative">{texts.archived}</Badge>
              )}
            </td>
            <td>
              {onEdit && (
                <Button
                  look={role.state === 'active' ? 'danger' : 'quiet'}
                  aria-label={`${role.state === 'active' ? texts.archive : texts.activate}: ${role.name}`}
                  onPress={() => change.mutate(role)}
                >
                  {role.state === 'active' ? texts.archive : texts.activate}
                </Button>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </>
  )
}
