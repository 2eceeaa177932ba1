import type { Scope } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import type { FieldProps } from '../ui/field.tsx'
import { Checkbox, FieldGroup } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { rolesQuery } from './queries.ts'

/** The scopes that the session may grant, each with its meaning. */
export function ScopeChoice({ name, value: scopes, onChange }: FieldProps<Scope[]>) {
  const texts = useMessages(messages)
  const session = useSession()
  const known = (Object.keys(texts.scopeTexts) as Scope[]).filter(scope => session.scopes.includes(scope))
  return (
    <FieldGroup legend={texts.scopes} name={name} {...(scopes.length === 0 && { help: texts.scopesMissing })}>
      {known.map(scope => (
        <Checkbox
          key={scope}
          isSelected={scopes.includes(scope)}
          onChange={isSelected => onChange(isSelected ? [...scopes, scope] : scopes.filter(each => each !== scope))}
        >
          <span>
            {texts.scopeTexts[scope]} <code className="muted">{scope}</code>
          </span>
        </Checkbox>
      ))}
    </FieldGroup>
  )
}

/** The scopes of a client or a session. */
export function ScopeList({ scopes }: { scopes: readonly Scope[] }) {
  return <span className={styles.scopeList}>{scopes.join(' ')}</span>
}

/**
 * The role of a new client or token. Without roles in the organization, there is no choice. A session with a role can
 * give only its own.
 */
export function RoleChoice({ value, onChange }: FieldProps<string>) {
  const texts = useMessages(messages)
  const { data: roles = [] } = useQuery(rolesQuery)
  const { role: own } = useSession()
  const given = roles.filter(({ key, state }) => state === 'active' && (own ?? key) === key)
  if (given.length === 0) return null
  const options = [
    ...(own === null ? [{ value: '', label: texts.noRole }] : []),
    ...given.map(({ key, name }) => ({ value: key, label: name })),
  ]
  return <Select label={texts.role} options={options} value={value || (own ?? '')} onChange={onChange} />
}
