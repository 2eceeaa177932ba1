import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { useShortcuts } from './keys.tsx'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import styles from './shell.module.css'

/** Lists the keys of the page. */
export default function KeysDialog({ onClose }: { onClose(): void }) {
  const texts = useMessages(messages)
  const shortcuts = useShortcuts()
  return (
    <Dialog title={texts.keys} onClose={onClose}>
      <dl className={styles.keys}>
        {shortcuts.map(({ keys, description }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map(key => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
      <CloseAction onClose={onClose} />
    </Dialog>
  )
}
