import { useQuery } from '@tanstack/react-query'
import { useMessages } from '../app/language.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { rolesQuery } from './queries.ts'

/** The role of a new client or token. Without any role in the organization, there is nothing to choose. */
export function RoleChoice({ role, onChange }: { role: string; onChange: (role: string) => void }) {
  const texts = useMessages(messages)
  const { data: roles = [] } = useQuery(rolesQuery)
  const active = roles.filter(({ state }) => state === 'active')
  if (active.length === 0) return null
  const options = [{ value: '', label: texts.noRole }, ...active.map(({ key, name }) => ({ value: key, label: name }))]
  return <Select label={texts.role} options={options} value={role} onChange={onChange} />
}
