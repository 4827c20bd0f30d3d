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

-- What the consumer reads. It deletes a row after it has published it.
CREATE TABLE outbox (
  id         bigserial PRIMARY KEY,
  method     text NOT NULL,
  payload    jsonb NOT NULL,
  partition  integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON outbox (partition, id);

-- Each change of an order has a number, by which a page knows the newest.
CREATE FUNCTION orders_version() RETURNS trigger AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER orders_version BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION orders_version();

-- The change and its message are one transaction, whoever makes the change: both are there, or neither. The lock of
-- the order's row keeps the messages of an order in their order. The key is that of the message: a repeat has the same.
CREATE FUNCTION orders_outbox() RETURNS trigger AS $$
BEGIN
  INSERT INTO outbox (method, payload) VALUES ('publish', jsonb_build_object(
    'channel', 'orders:all',
    'data', to_jsonb(NEW),
    'idempotency_key', gen_random_uuid()));
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER orders_outbox AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION orders_outbox();

-- Wakes the consumer at the commit.
CREATE FUNCTION outbox_notify() RETURNS trigger AS $$
BEGIN
  PERFORM pg_notify('outbox', NEW.partition::text);
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER outbox_notify AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION outbox_notify();

COMMIT;
