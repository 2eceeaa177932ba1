import type { JobRefusal } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Table } from '../ui/table.tsx'
import styles from './bulk.module.css'
import { messages } from './messages.ts'

/** Those that were or would be refused, with the reasons. */
export function RefusalList({ refusals }: { refusals: readonly JobRefusal[] }) {
  const texts = useMessages(messages)
  const { translated } = useServiceTexts()
  const said = (text: string) => translated(text) ?? text
  return (
    <div className={styles.refused}>
      <Table label={texts.refusedList} headers={[texts.who, texts.reason]}>
        {refusals.map(({ id, external_id, message, details }) => (
          <tr key={id}>
            <td>{external_id ?? <code>{id}</code>}</td>
            <td>
              {details.length === 0 && said(message)}
              {details.map(({ path, message }) => (
                <div key={path + message}>
                  {path && <code>{path}</code>} {said(message)}
                </div>
              ))}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}
