-- Orders, and the outbox that the gateway publishes. Run it once:
--
--   psql "$DATABASE_URL" -f schema.sql

BEGIN;

CREATE TABLE orders (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer text NOT NULL CHECK (length(customer) BETWEEN 1 AND 100),
  state    text NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'paid', 'packed', 'shipped', 'cancelled')),
  version  integer NOT NULL DEFAULT 1
);

-- Read by the consumer, which deletes a row after publishing it.
CREATE TABLE outbox (
  id         bigserial PRIMARY KEY,
  method     text NOT NULL,
  payload    jsonb NOT NULL,
  partition  integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON outbox (partition, id);

-- Each change of an order increments its version, so that a page can ignore older ones.
CREATE FUNCTION orders_version() RETURNS trigger AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER orders_version BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION orders_version();

-- The change and its message are one transaction: both are committed, or neither. The row lock of the order keeps the
-- messages of an order in sequence. The idempotency key identifies the message, so that a retry is not a duplicate.
CREATE FUNCTION orders_outbox() RETURNS trigger AS $$
BEGIN
  INSERT INTO outbox (method, payload) VALUES ('publish', jsonb_build_object(
    'channel', 'orders:all',
    'data', to_jsonb(NEW),
    'idempotency_key', gen_random_uuid()));
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER orders_outbox AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION orders_outbox();

-- Notifies the consumer on commit.
CREATE FUNCTION outbox_notify() RETURNS trigger AS $$
BEGIN
  PERFORM pg_notify('outbox', NEW.partition::text);
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER outbox_notify AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION outbox_notify();

COMMIT;
